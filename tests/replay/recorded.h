// Recorded connections for the tests of replay/: from the fixtures, or written by hand.
#pragma once

#include <string>
#include <vector>

#include "http2/recorded_connection.h"

namespace ztape::test {

// All connections of a fixture, with bodies.
std::vector<http2::RecordedConnection> recorded_fixture(const std::string& name);

// A unary call of `method` with one request and one response, all at the given times.
http2::Call unary_call(uint32_t stream, const std::string& method, int64_t start_ns, int64_t end_ns,
                       const std::string& request = "", const std::string& response = "");

// A server-stream call whose messages arrive at these times; it ends with the last of them, or at end_ns.
http2::Call stream_call(uint32_t stream, const std::string& method, int64_t start_ns,
                        const std::vector<int64_t>& message_ns, int64_t end_ns);

http2::RecordedConnection connection_of(std::vector<http2::Call> calls);

}  // namespace ztape::test
