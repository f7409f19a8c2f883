// Blocks that are gone, there twice, in another order, or another capture's.
#include "tests/damage/small_capture.h"

namespace ztape {
namespace {

using layout::kHeaderBytes;
using sample::all_but;
using sample::read_damaged;

class MovedBlocks : public testing::Test {
 protected:
  const sample::SmallCapture small_ = sample::small_capture();
  const std::size_t count_ = small_.blocks.size();

  void expect_found(const std::string& bytes, const std::set<std::size_t>& lost) {
    const auto outcome = read_damaged(small_, bytes);
    ASSERT_TRUE(outcome.opened) << outcome.error.line();
    EXPECT_EQ(outcome.blocks, all_but(small_, lost)) << outcome.text();
    EXPECT_EQ(outcome.missing(), std::set<uint64_t>(lost.begin(), lost.end())) << outcome.text();
    EXPECT_TRUE(outcome.corrupt());
    EXPECT_FALSE(outcome.torn()) << outcome.text();
  }
};

TEST_F(MovedBlocks, ABlockThatIsGoneIsNoticedByItsNumber) {
  for (std::size_t gone = 0; gone < count_; ++gone) {
    SCOPED_TRACE(gone);
    auto bytes = small_.bytes;
    bytes.erase(small_.begins[gone], small_.begins[gone + 1] - small_.begins[gone]);
    expect_found(bytes, {gone});
  }
}

TEST_F(MovedBlocks, SeveralBlocksGoneAreNamedTogether) {
  auto bytes = small_.bytes;
  bytes.erase(small_.begins[3], small_.begins[7] - small_.begins[3]);
  expect_found(bytes, {3, 4, 5, 6});
  const auto outcome = read_damaged(small_, bytes);
  ASSERT_EQ(outcome.damage.size(), 1u);
  EXPECT_EQ(outcome.damage[0].first_block, 3u);
  EXPECT_EQ(outcome.damage[0].block_count, 4u);
}

TEST_F(MovedBlocks, ABlockThatIsThereTwiceIsReadOnce) {
  for (std::size_t twice = 0; twice < count_; ++twice) {
    SCOPED_TRACE(twice);
    auto bytes = small_.bytes;
    bytes.insert(small_.begins[twice + 1], small_.block(twice));
    expect_found(bytes, {});
  }
}

TEST_F(MovedBlocks, AnEarlierBlockAgainAtTheEndIsNotReadAgain) {
  auto bytes = small_.bytes;
  bytes.insert(small_.trailer(), small_.block(2));
  expect_found(bytes, {});
}

TEST_F(MovedBlocks, OfTwoBlocksInTheWrongOrderTheLaterIsRead) {
  for (std::size_t first = 0; first + 1 < count_; ++first) {
    SCOPED_TRACE(first);
    std::vector<std::size_t> order;
    order.reserve(count_);
    for (std::size_t i = 0; i < count_; ++i) order.push_back(i);
    std::swap(order[first], order[first + 1]);
    expect_found(small_.rearranged(order), {first});
  }
}

TEST_F(MovedBlocks, ABlockOfAnotherCaptureIsNotRead) {
  const auto other = sample::small_capture(2);
  for (std::size_t at = 0; at < count_; ++at) {
    SCOPED_TRACE(at);
    auto instead = small_.bytes;
    instead.replace(small_.begins[at], small_.begins[at + 1] - small_.begins[at], other.block(at));
    expect_found(instead, {at});
    auto inserted = small_.bytes;
    inserted.insert(small_.begins[at], other.block(at));
    expect_found(inserted, {});
  }
}

TEST_F(MovedBlocks, ABlockOfAnotherCaptureBehindADamagedHeaderIsNotReadEither) {
  const auto other = sample::small_capture(2);
  for (std::size_t at = 1; at < count_; ++at) {
    for (std::size_t hit = 0; hit < kHeaderBytes; ++hit) {
      auto foreign = other.block(at);
      foreign[hit] = static_cast<char>(foreign[hit] ^ 0x10);
      auto bytes = small_.bytes;
      bytes.replace(small_.begins[at], small_.begins[at + 1] - small_.begins[at], foreign);
      expect_found(bytes, {at});
    }
  }
}

TEST_F(MovedBlocks, AnotherBlockBehindADamagedHeaderIsNotTakenForTheMissingOne) {
  for (std::size_t hit = 0; hit < kHeaderBytes; ++hit) {
    auto wrong = small_.block(6);
    wrong[hit] = static_cast<char>(wrong[hit] ^ 0x10);
    auto bytes = small_.bytes;
    bytes.replace(small_.begins[3], small_.begins[4] - small_.begins[3], wrong);
    expect_found(bytes, {3});
  }
}

TEST_F(MovedBlocks, AHeaderOfZerosLosesItsBlock) {
  auto bytes = small_.bytes;
  bytes.replace(small_.begins[3], kHeaderBytes, kHeaderBytes, '\0');
  expect_found(bytes, {3});
}

TEST_F(MovedBlocks, TwoNeighboursHitAreReportedBoth) {
  auto bytes = small_.bytes;
  bytes[small_.begins[3] + kHeaderBytes + 20] ^= 0x01;
  bytes[small_.begins[4] + kHeaderBytes + 20] ^= 0x01;
  expect_found(bytes, {3, 4});
}

TEST_F(MovedBlocks, ABlockGoneAndABlockHitAreReportedBoth) {
  auto bytes = small_.bytes;
  bytes[small_.begins[7] + kHeaderBytes + 20] ^= 0x01;
  bytes.erase(small_.begins[3], small_.begins[4] - small_.begins[3]);
  expect_found(bytes, {3, 7});
}

TEST_F(MovedBlocks, TheTrailerBeforeTheLastBlockIsNoEnd) {
  const auto trailer = small_.bytes.substr(small_.trailer(), kHeaderBytes);
  auto bytes = small_.bytes;
  bytes.erase(small_.trailer(), kHeaderBytes);
  bytes.insert(small_.begins[count_ - 1], trailer);
  const auto outcome = read_damaged(small_, bytes);
  EXPECT_EQ(outcome.blocks, all_but(small_, {})) << outcome.text();
  EXPECT_TRUE(outcome.corrupt());
}

TEST_F(MovedBlocks, TheTrailerTwiceIsFound) {
  auto bytes = small_.bytes;
  bytes.insert(small_.trailer(), small_.bytes.substr(small_.trailer(), kHeaderBytes));
  expect_found(bytes, {});
}

TEST_F(MovedBlocks, AnotherCapturesEndIsFound) {
  const auto other = sample::small_capture(2);
  const auto outcome =
      read_damaged(small_, small_.bytes.substr(0, small_.trailer()) + other.bytes.substr(other.trailer()));
  EXPECT_EQ(outcome.blocks, all_but(small_, {}));
  EXPECT_TRUE(outcome.corrupt());
}

TEST_F(MovedBlocks, BytesAfterTheEndAreFound) {
  for (const std::string& after : {std::string("\n"), std::string(5000, '\0'), small_.bytes}) {
    const auto outcome = read_damaged(small_, small_.bytes + after);
    EXPECT_EQ(outcome.blocks, all_but(small_, {}));
    ASSERT_EQ(outcome.damage.size(), 1u);
    EXPECT_EQ(outcome.damage[0].offset, small_.bytes.size());
    EXPECT_EQ(outcome.damage[0].bytes, after.size());
    EXPECT_TRUE(outcome.corrupt());
    EXPECT_FALSE(outcome.torn());
  }
}

TEST_F(MovedBlocks, BytesBeforeTheStartAreFound) {
  for (const std::string& before : {std::string("x"), std::string(5000, 'x'), std::string("(\xB5/\xFD", 4)}) {
    expect_found(before + small_.bytes, {});
  }
}

TEST_F(MovedBlocks, ACaptureInsideAChunkIsNotTakenForThisOne) {
  // Bytes that do not compress stand in the file as they are: the inner capture's headers too.
  const auto inner = sample::small_capture(3, 400);
  std::string path = testing::TempDir() + "ztape-inner-" + std::to_string(getpid());
  auto writer = CaptureWriter::create(path, sample::start(), {.overwrite = true, .compression_level = -100});
  ASSERT_TRUE((*writer)->append(sample::chunk_record(1, Direction::client_to_server, 0, 5, inner.bytes)));
  ASSERT_TRUE((*writer)->flush());
  const auto end = (*writer)->bytes_written();
  ASSERT_TRUE((*writer)->append(sample::chunk_record(1, Direction::client_to_server, inner.bytes.size(), 6, "after")));
  ASSERT_TRUE((*writer)->finish());
  writer->reset();
  auto bytes = sample::read_file(path);
  std::remove(path.c_str());
  ASSERT_NE(bytes.find(inner.bytes.substr(inner.begins[3], kHeaderBytes)), std::string::npos);
  for (const std::size_t hit : {std::size_t{20}, std::size_t{end - 3}}) {
    auto damaged = bytes;
    damaged[hit] = static_cast<char>(damaged[hit] ^ 0x01);
    auto reader = CaptureReader::open_bytes(damaged, "outer");
    ASSERT_TRUE(reader.has_value());
    const auto back = sample::read_all(**reader);
    EXPECT_EQ(back.damage.size(), 1u);
    EXPECT_EQ(back.records.size(), hit == 20 ? 3u : 2u);
  }
}

}  // namespace
}  // namespace ztape
