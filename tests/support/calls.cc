#include "tests/support/calls.h"

#include <algorithm>

namespace ztape::test {
namespace {

template <typename T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace

std::vector<Piece> pieces_of(const FixtureConnection& connection) {
  std::vector<Piece> pieces;
  for (const auto& chunk : connection.chunks) {
    if (chunk.eof) continue;
    pieces.push_back(
        {chunk.direction, connection.bytes[index(chunk.direction)].substr(chunk.offset, chunk.length), chunk.time_ns});
  }
  return pieces;
}

std::vector<http2::Call> read_calls(std::span<const Piece> pieces, http2::CallBuilderOptions options) {
  std::vector<http2::Call> calls;
  http2::CallBuilder builder(1, options, [&](http2::Call&& call) { calls.push_back(std::move(call)); });
  http2::ConnectionReader reader(builder);
  for (const auto& piece : pieces) {
    reader.read(piece.direction, {reinterpret_cast<const uint8_t*>(piece.bytes.data()), piece.bytes.size()},
                piece.time_ns);
  }
  builder.close(http2::EndedBy::client_close, pieces.empty() ? 0 : pieces.back().time_ns);
  std::ranges::stable_sort(calls, {}, &http2::Call::stream);
  return calls;
}

nlohmann::json summary_of(const http2::Call& call, bool with_times) {
  nlohmann::json row{{"stream", call.stream},
                     {"method", call.path},
                     {"request_messages", call.request_message_count},
                     {"request_bytes", call.request_bytes},
                     {"response_messages", call.response_message_count},
                     {"response_bytes", call.response_bytes},
                     {"http_status", or_null(call.http_status)},
                     {"grpc_status", or_null(call.grpc_status)},
                     {"grpc_message", or_null(call.grpc_message)},
                     {"ended_by", name(call.ended_by)},
                     {"reset_code", or_null(call.reset_code)}};
  if (with_times) {
    row["start_ns"] = call.start_ns;
    row["first_byte_ns"] = call.first_byte_ns;
    row["end_ns"] = call.end_ns;
  }
  return row;
}

nlohmann::json expected_summary(nlohmann::json row, bool with_times) {
  if (!row.contains("reset_code")) row["reset_code"] = nullptr;
  if (!with_times) {
    for (const char* key : {"start_ns", "first_byte_ns", "end_ns"}) row.erase(key);
  }
  return row;
}

}  // namespace ztape::test
