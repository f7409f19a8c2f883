// A capture cut at every byte offset, and one with every single byte flipped.
#include "tests/damage/small_capture.h"

namespace ztape {
namespace {

using sample::all_but;
using sample::read_damaged;

constexpr std::size_t kIdentifying = 12;  // fewer bytes do not say that it is a capture

TEST(EveryByte, AWholeCaptureIsClean) {
  const auto small = sample::small_capture();
  const auto outcome = read_damaged(small, small.bytes);
  EXPECT_EQ(outcome.blocks, all_but(small, {}));
  EXPECT_TRUE(outcome.damage.empty());
  EXPECT_FALSE(outcome.torn() || outcome.corrupt());
  EXPECT_EQ(outcome.verified.connections_proven, 1u);
}

TEST(EveryByte, CutAnywhereGivesEveryBlockBeforeAndIsTorn) {
  const auto small = sample::small_capture();
  for (std::size_t length = 0; length < small.bytes.size(); ++length) {
    SCOPED_TRACE("cut to " + std::to_string(length) + " of " + std::to_string(small.bytes.size()));
    const auto outcome = read_damaged(small, small.bytes.substr(0, length));
    if (length < kIdentifying) {
      ASSERT_FALSE(outcome.opened);
      ASSERT_EQ(outcome.error.code, ErrorCode::not_a_capture);
      continue;
    }
    ASSERT_TRUE(outcome.opened) << outcome.error.line();
    std::vector<std::size_t> before;
    for (std::size_t i = 0; i < small.blocks.size() && small.begins[i + 1] <= length; ++i) before.push_back(i);
    ASSERT_EQ(outcome.blocks, before) << outcome.text();
    ASSERT_EQ(outcome.damage.size(), 1u) << outcome.text();
    ASSERT_EQ(outcome.damage[0].code, ErrorCode::torn);
    ASSERT_EQ(outcome.damage[0].offset + outcome.damage[0].bytes, length);
    ASSERT_TRUE(outcome.torn());
    ASSERT_FALSE(outcome.corrupt()) << outcome.text();
  }
}

class Flipped : public testing::TestWithParam<int> {};

TEST_P(Flipped, EveryOtherBlockComesBackAndTheFlipIsFound) {
  const auto small = sample::small_capture();
  for (std::size_t at = 0; at < small.bytes.size(); ++at) {
    SCOPED_TRACE("byte " + std::to_string(at) + " ^ " + std::to_string(GetParam()));
    auto bytes = small.bytes;
    bytes[at] = static_cast<char>(bytes[at] ^ GetParam());
    const auto outcome = read_damaged(small, bytes);
    ASSERT_TRUE(outcome.opened) << outcome.error.line();

    // A block is lost only when its compressed bytes are hit: what its header says can be made anew from them.
    std::set<std::size_t> lost;
    for (std::size_t i = 0; i < small.blocks.size(); ++i) {
      if (at >= small.begins[i] + layout::kHeaderBytes && at < small.begins[i + 1]) lost.insert(i);
    }
    ASSERT_EQ(outcome.blocks, all_but(small, lost)) << outcome.text();
    ASSERT_EQ(outcome.missing(), std::set<uint64_t>(lost.begin(), lost.end())) << outcome.text();
    ASSERT_EQ(outcome.damage.size(), 1u) << outcome.text();
    ASSERT_EQ(outcome.damage[0].code, ErrorCode::corrupt);
    ASSERT_LE(outcome.damage[0].offset, at);
    ASSERT_GT(outcome.damage[0].offset + outcome.damage[0].bytes, at);
    ASSERT_TRUE(outcome.corrupt());
    ASSERT_FALSE(outcome.torn()) << outcome.text();
  }
}

INSTANTIATE_TEST_SUITE_P(EveryByte, Flipped, testing::Values(0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff));

TEST(EveryByte, CutAnywhereWithAFlipBeforeIsTornAndCorrupt) {
  const auto small = sample::small_capture();
  const std::size_t flipped = small.begins[2] + layout::kHeaderBytes + 20;
  for (std::size_t length = small.begins[4]; length < small.bytes.size(); ++length) {
    SCOPED_TRACE(length);
    auto bytes = small.bytes.substr(0, length);
    bytes[flipped] = static_cast<char>(bytes[flipped] ^ 0x55);
    const auto outcome = read_damaged(small, bytes);
    ASSERT_TRUE(outcome.torn() && outcome.corrupt()) << outcome.text();
    ASSERT_EQ(outcome.missing(), std::set<uint64_t>{2});
  }
}

TEST(EveryByte, OneByteTakenOutAnywhereLosesOneBlock) {
  const auto small = sample::small_capture();
  for (std::size_t at = 0; at < small.bytes.size(); ++at) {
    SCOPED_TRACE(at);
    auto bytes = small.bytes;
    bytes.erase(at, 1);
    const auto outcome = read_damaged(small, bytes);
    ASSERT_TRUE(outcome.opened);
    ASSERT_GE(outcome.blocks.size() + 1, small.blocks.size()) << outcome.text();
    ASSERT_EQ(outcome.missing().size() + outcome.blocks.size(), small.blocks.size()) << outcome.text();
    ASSERT_TRUE(outcome.corrupt() || outcome.torn());
  }
}

TEST(EveryByte, OneBytePutInAnywhereLosesOneBlockAtMost) {
  const auto small = sample::small_capture();
  for (std::size_t at = 0; at <= small.bytes.size(); ++at) {
    SCOPED_TRACE(at);
    auto bytes = small.bytes;
    bytes.insert(at, 1, 'z');
    const auto outcome = read_damaged(small, bytes);
    ASSERT_TRUE(outcome.opened);
    ASSERT_GE(outcome.blocks.size() + 1, small.blocks.size()) << outcome.text();
    ASSERT_EQ(outcome.missing().size() + outcome.blocks.size(), small.blocks.size()) << outcome.text();
    ASSERT_TRUE(outcome.corrupt());
  }
}

}  // namespace
}  // namespace ztape
