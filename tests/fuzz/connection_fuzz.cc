// A connection of whatever speaks anything, as `ztape show` reads it. The input is a list of reads as http2_reader has
// them. What must hold: no crash, nothing kept beyond its bound, and its words can be shown.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "http2/connection_collector.h"
#include "report/call_words.h"
#include "report/message_page.h"
#include "report/text.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

bool is_clean(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c == '\n' || static_cast<uint8_t>(c) >= 0x20; });
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, std::size_t size) {
  using namespace ztape;
  std::span<const uint8_t> left(input, size);
  uint64_t offset[2] = {0, 0};
  int64_t time_ns = 0;
  http2::ConnectionCollector collector(1, {.keep_bodies = true, .max_message_bytes = 1 << 20, .not_only_grpc = true},
                                       nullptr);
  while (!left.empty()) {
    const auto direction = static_cast<Direction>(left[0] & 1);
    const auto bytes = left.subspan(1, std::min<std::size_t>(left.size() - 1, (left[0] >> 1) + 1U));
    capture::Chunk chunk;
    chunk.set_direction(static_cast<capture::Direction>(direction));
    chunk.set_offset(offset[index(direction)]);
    chunk.set_bytes(bytes.data(), bytes.size());
    chunk.set_time_ns(++time_ns);
    offset[index(direction)] += bytes.size();
    collector.chunk(chunk);
    left = left.subspan(1 + bytes.size());
  }
  const auto connection = collector.take();
  expect(is_clean(report::protocol_note(connection)) && is_clean(report::protocol_word(connection)));
  for (const auto& call : connection.calls) {
    expect(call.request_beginning.size() <= http2::kKeptBeginningBytes);
    expect(call.response_beginning.size() <= http2::kKeptBeginningBytes);
    expect(is_clean(report::call_with_messages(connection, call, 80)));
  }
  return 0;
}
