// Many kinds of damage at once, at random: never a crash, never a wrong record, never unnoticed.
#include <random>

#include "tests/damage/small_capture.h"

namespace ztape {
namespace {

TEST(RandomDamage, IsNeverReadAsARecordAndNeverUnnoticed) {
  const auto small = sample::small_capture();
  const char* asked = std::getenv("ZTAPE_SEED");
  const uint32_t seed = asked != nullptr ? static_cast<uint32_t>(std::stoul(asked)) : std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const auto below = [&random](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (int round = 0; round < 50'000; ++round) {
    std::string bytes = small.bytes;
    const std::size_t hits = 1 + below(4);
    for (std::size_t i = 0; i < hits && !bytes.empty(); ++i) {
      const std::size_t at = below(bytes.size());
      const std::size_t length = std::min(bytes.size() - at, below(2) == 0 ? 1 + below(8) : below(400));
      switch (below(6)) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes.erase(at, length); break;
        case 2: bytes.insert(at, sample::noise(length, static_cast<uint32_t>(random()))); break;
        case 3: bytes.replace(at, length, length, '\0'); break;
        case 4: bytes.insert(below(bytes.size()), bytes.substr(at, length)); break;
        default: bytes.resize(at); break;
      }
    }
    const auto outcome = sample::read_damaged(small, bytes);
    if (bytes == small.bytes || !outcome.opened) continue;
    ASSERT_TRUE(outcome.corrupt() || outcome.torn()) << "seed " << seed << " round " << round;
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << " round " << round << "\n" << outcome.text();
  }
}

}  // namespace
}  // namespace ztape
