// Reads bytes into calls, and says in one JSON object what the fixtures' independent decoder says of a call.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "http2/call.h"
#include "http2/call_builder.h"
#include "http2/connection_reader.h"
#include "tests/support/fixture.h"

namespace ztape::test {

// One read: bytes of a direction at a time.
struct Piece {
  Direction direction = Direction::client_to_server;
  std::string bytes;
  int64_t time_ns = 0;
};

// The pieces of a fixture as they were recorded.
std::vector<Piece> pieces_of(const FixtureConnection& connection);

// The calls in the order of their streams; closed by the client at the end.
std::vector<http2::Call> read_calls(std::span<const Piece> pieces, http2::CallBuilderOptions options = {});

// With the fields of a row of calls.jsonl. `with_times`: start_ns, first_byte_ns and end_ns too.
nlohmann::json summary_of(const http2::Call& call, bool with_times);
// A row of calls.jsonl in the same form.
nlohmann::json expected_summary(nlohmann::json row, bool with_times);

}  // namespace ztape::test
