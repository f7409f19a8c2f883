// Recorded captures for the tests of serve: out of the fixtures, or made of single calls.
#pragma once

#include <string>
#include <vector>

#include "http2/recorded_connection.h"
#include "replay/answer.h"
#include "tests/support/calls.h"
#include "tests/support/fixture.h"

namespace ztape::test {

// All connections of a fixture, one after another on one clock, with bodies and frames.
http2::RecordedCapture recorded_fixture(const std::string& name);

// The calls of one connection, as read_calls() gives them, with bodies and frames.
std::vector<http2::Call> calls_with_bodies(const FixtureConnection& connection);

// A unary or server-streaming call of `method` that answered with these messages, each in a DATA frame and a read of
// its own, `start_ns` after the capture's beginning.
replay::Answer answer(const std::string& method, const std::string& request, const std::vector<std::string>& messages,
                      int64_t start_ns = 0);

std::string path_of(const std::string& method);

}  // namespace ztape::test
