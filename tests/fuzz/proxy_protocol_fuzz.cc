// The PROXY header's reader on whatever bytes. What must hold: no crash, it takes no more than there is and nothing
// after its end, and the pieces it gets do not matter. The first byte of the input is the size of the pieces.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "proxy/proxy_protocol.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, std::size_t size) {
  using namespace ztape::proxy;
  if (size == 0) return 0;
  const std::size_t step = input[0] + std::size_t{1};
  const std::span<const uint8_t> bytes(input + 1, size - 1);
  ProxyHeaderReader whole, pieces;
  const auto taken = whole.take(bytes);
  std::size_t taken_in_pieces = 0;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    taken_in_pieces += pieces.take(bytes.subspan(at, std::min(step, bytes.size() - at)));
  }
  expect(taken <= bytes.size() && taken == taken_in_pieces);
  expect(whole.whole() == pieces.whole() && whole.problem() == pieces.problem() && whole.source() == pieces.source());
  expect(whole.whole() || !whole.problem().empty() || taken == bytes.size());
  expect(!(whole.whole() && !whole.problem().empty()));
  return 0;
}
