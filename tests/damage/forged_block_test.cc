// Blocks with right checksums and wrong content, and damage that is larger than what a reader looks at in one piece.
#include <xxhash.h>
#include <zstd.h>

#include <functional>

#include "tests/damage/small_capture.h"

namespace ztape {
namespace {

using layout::kHeaderBytes;
using sample::all_but;
using sample::read_damaged;

std::string zstd_frame(const std::string& content) {
  std::string frame(ZSTD_compressBound(content.size()), '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  frame.resize(ZSTD_compress2(context, frame.data(), frame.size(), content.data(), content.size()));
  ZSTD_freeCCtx(context);
  return frame;
}

class ForgedBlock : public testing::Test {
 protected:
  const sample::SmallCapture small_ = sample::small_capture();
  static constexpr std::size_t kNumber = 4;

  // The capture with block 4 replaced by this frame; its header says what `change` makes of the truth.
  std::string with(
      const std::string& frame, std::size_t content_bytes, uint32_t records,
      const std::function<void(layout::Header&)>& change = [](layout::Header&) {}) {
    const auto old = small_.block(kNumber);
    auto header = *layout::decode(sample::span_of(old));
    header.compressed_bytes = static_cast<uint32_t>(frame.size());
    header.decompressed_bytes = static_cast<uint32_t>(content_bytes);
    header.record_count = records;
    header.checksum = XXH3_64bits(frame.data(), frame.size());
    change(header);
    const auto encoded = layout::encode(header);
    auto bytes = small_.bytes;
    return bytes.replace(small_.begins[kNumber], old.size(), std::string(encoded.begin(), encoded.end()) + frame);
  }

  void expect_lost(const std::string& bytes, ErrorCode code) {
    const auto outcome = read_damaged(small_, bytes);
    EXPECT_EQ(outcome.blocks, all_but(small_, {kNumber})) << outcome.text();
    ASSERT_FALSE(outcome.damage.empty());
    EXPECT_EQ(outcome.damage[0].code, code) << outcome.text();
    EXPECT_EQ(outcome.damage[0].first_block, kNumber);
    EXPECT_EQ(outcome.damage[0].block_count, 1u);
    EXPECT_TRUE(outcome.corrupt());
  }
};

TEST_F(ForgedBlock, OfABlockThatDoesNotParseToItsEndNoRecordIsGiven) {
  const auto record = sample::chunk_record(1, Direction::client_to_server, 72, 1, "abc").SerializeAsString();
  const std::string good = std::string(1, static_cast<char>(record.size())) + record;
  const std::pair<std::string, uint32_t> contents[] = {
      {good + good, 1},  // more than it says
      {good, 2},         // fewer
      {good + std::string("\x05"
                          "ab",
                          3),
       2},  // the last is cut off
      {good + std::string("\x03\xff\xff\xff", 4), 2},
      {good + std::string(1, '\0'), 2},  // a record of nothing
      {good + std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10), 2},
      {"", 1},
  };
  for (const auto& [content, records] : contents) {
    expect_lost(with(zstd_frame(content), content.size(), records), ErrorCode::corrupt);
  }
}

TEST_F(ForgedBlock, ADirectionThatIsNoneIsCorrupt) {
  capture::Record records[4];
  const auto neither = static_cast<capture::Direction>(7);
  records[0].mutable_chunk()->set_direction(neither);
  records[1].mutable_frame()->set_direction(neither);
  records[2].mutable_headers()->set_direction(neither);
  records[3].mutable_gap()->set_direction(neither);
  for (const auto& record : records) {
    const auto bytes = record.SerializeAsString();
    const auto content = std::string(1, static_cast<char>(bytes.size())) + bytes;
    expect_lost(with(zstd_frame(content), content.size(), 1), ErrorCode::corrupt);
  }
}

TEST_F(ForgedBlock, ARecordOfAKindToComeIsPassedOn) {
  const std::string content("\x05\xa2\x06\x02hi", 6);  // field 100, two bytes
  const auto bytes = with(zstd_frame(content), content.size(), 1);
  auto reader = CaptureReader::open_bytes(bytes, "newer");
  bool seen = false;
  while (const auto* record = (*reader)->next()) {
    if (record->kind_case() != capture::Record::KIND_NOT_SET) continue;
    EXPECT_EQ(record->SerializeAsString(), content.substr(1));
    seen = true;
  }
  EXPECT_TRUE(seen);
}

TEST_F(ForgedBlock, ABlockOverTheLimitIsNotHeld) {
  const auto frame = zstd_frame(std::string(layout::kMaxBlockBytes + 1, '\0'));
  EXPECT_LT(frame.size(), 100'000u);
  expect_lost(with(frame, layout::kMaxBlockBytes + 1, 1), ErrorCode::over_limit);
  expect_lost(with(frame, 1000, 1), ErrorCode::corrupt);  // the header understates it
  expect_lost(with(zstd_frame("x"), 1, layout::kMaxBlockRecords + 1), ErrorCode::over_limit);
  // A compressed size beyond the end of the file: the next header is found all the same.
  expect_lost(with(zstd_frame("x"), 1, 1, [](auto& header) { header.compressed_bytes = 0xffffffff; }),
              ErrorCode::corrupt);
}

TEST_F(ForgedBlock, TwoFramesOrNoneAreNotABlock) {
  const auto frame = small_.block(kNumber).substr(kHeaderBytes);
  const auto header = *layout::decode(sample::span_of(small_.block(kNumber)));
  expect_lost(with(frame + zstd_frame(""), header.decompressed_bytes, header.record_count), ErrorCode::corrupt);
  expect_lost(with("", 0, 0), ErrorCode::corrupt);
}

TEST_F(ForgedBlock, ABlockNumberFarAheadIsReportedAsSoManyMissing) {
  auto header = *layout::decode(sample::span_of(small_.block(kNumber)));
  header.number = layout::kMaxBlocks - 1;
  const auto encoded = layout::encode(header);
  auto bytes = small_.bytes;
  bytes.replace(small_.begins[kNumber], kHeaderBytes, std::string(encoded.begin(), encoded.end()));
  auto reader = CaptureReader::open_bytes(bytes, "far");
  const auto back = sample::read_all(**reader);
  ASSERT_FALSE(back.damage.empty());
  EXPECT_EQ(back.damage[0].first_block, kNumber);
  EXPECT_EQ(back.damage[0].block_count, layout::kMaxBlocks - 1 - kNumber);
}

// The reader looks for the next header a MiB at a time: it must not miss one that lies across two pieces.
TEST_F(ForgedBlock, TheNextHeaderIsFoundWhereverItLies) {
  const auto noise = sample::noise((1 << 20) + 200, 5);
  for (std::size_t length = (1 << 20) - 100; length < noise.size(); ++length) {
    auto bytes = small_.bytes;
    bytes.insert(small_.begins[kNumber], noise, 0, length);
    const auto outcome = read_damaged(small_, bytes);
    ASSERT_EQ(outcome.blocks, all_but(small_, {})) << length;
    ASSERT_EQ(outcome.damage.at(0).bytes, length);
  }
}

TEST_F(ForgedBlock, TheStartIsFoundBehindMuchElse) {
  const auto noise = sample::noise((1 << 20) + 4100, 6);
  for (std::size_t length = (1 << 20) - 4200; length < noise.size(); length += 41) {
    const auto outcome = read_damaged(small_, noise.substr(0, length) + small_.bytes);
    ASSERT_TRUE(outcome.opened) << length;
    ASSERT_EQ(outcome.blocks, all_but(small_, {})) << length;
  }
}

TEST_F(ForgedBlock, AFileOnDiskIsReadLikeBytesInMemory) {
  const std::string path = testing::TempDir() + "ztape-forged-" + std::to_string(getpid());
  auto bytes = small_.bytes;
  bytes.insert(small_.begins[kNumber], sample::noise(3 << 20, 7));
  bytes[small_.begins[2] + 100] = static_cast<char>(bytes[small_.begins[2] + 100] ^ 1);
  sample::write_file(path, bytes);
  const auto back = sample::read_all(path);
  std::remove(path.c_str());
  auto reader = CaptureReader::open_bytes(bytes, "memory");
  const auto expected = sample::read_all(**reader);
  EXPECT_EQ(back.records, expected.records);
  ASSERT_EQ(back.damage.size(), 2u);
  ASSERT_EQ(expected.damage.size(), 2u);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(back.damage[i].message, expected.damage[i].message);
}

}  // namespace
}  // namespace ztape
