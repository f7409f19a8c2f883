// The HTTP/2 reader on whatever bytes. The input is a list of reads: a byte that names direction (bit 0) and length
// (the other bits, plus 1), then so many bytes. What must hold: no crash, every byte counted, at most one call a
// stream.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <span>

#include "http2/call_builder.h"
#include "http2/connection_reader.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, std::size_t size) {
  using namespace ztape;
  std::span<const uint8_t> left(input, size);
  std::set<uint32_t> streams;
  uint64_t given[2] = {0, 0};
  http2::CallBuilder builder(1, {.keep_bodies = true, .keep_frames = true, .max_message_bytes = 1 << 20},
                             [&](http2::Call&& call) {
                               expect(streams.insert(call.stream).second);
                               expect(call.requests.size() == call.request_message_count);
                               expect(call.responses.size() == call.response_message_count);
                             });
  http2::ConnectionReader reader(builder);
  int64_t time_ns = 0;
  while (!left.empty()) {
    const auto direction = static_cast<Direction>(left[0] & 1);
    const std::size_t length = std::min<std::size_t>(left.size() - 1, (left[0] >> 1) + 1U);
    reader.read(direction, left.subspan(1, length), ++time_ns);
    given[index(direction)] += length;
    left = left.subspan(1 + length);
    for (const Direction each : kDirections) expect(reader.offset(each) == given[index(each)]);
  }
  builder.close(http2::EndedBy::client_close, time_ns);
  return 0;
}
