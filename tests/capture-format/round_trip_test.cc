// What was written is what is read, by us and by zstd alone.
#include <google/protobuf/io/coded_stream.h>
#include <zstd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/capture-format/sample.h"
#include "tests/support/temporary_directory.h"

namespace ztape {
namespace {

using sample::chunk_record;

std::vector<capture::Record> varied_records(uint32_t seed) {
  std::vector<capture::Record> records;
  records.push_back(sample::open_record(1, 10));
  uint64_t offset = 0;
  for (int i = 0; i < 200; ++i) {
    const auto bytes = sample::noise(static_cast<std::size_t>(i * i) % 3000, seed + static_cast<uint32_t>(i));
    records.push_back(chunk_record(1, kDirections[i % 2], offset, 1000 + i, bytes));
    offset += bytes.size();
    auto& frame = *records.emplace_back().mutable_frame();
    frame.set_connection(1);
    frame.set_stream(static_cast<uint32_t>(i));
    frame.set_length(static_cast<uint32_t>(bytes.size()));
    auto& headers = *records.emplace_back().mutable_headers();
    headers.set_connection(1);
    auto& field = *headers.add_fields();
    field.set_name(":path");
    field.set_value("/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetBlock");
  }
  return records;
}

// Writes chunks by append_chunk and the rest by append; returns every record as it must be read.
std::vector<std::string> write(const std::string& path, const std::vector<capture::Record>& records,
                               const WriterOptions& options = {}) {
  auto writer = CaptureWriter::create(path, sample::start(), options);
  EXPECT_TRUE(writer.has_value());
  capture::Record first;
  *first.mutable_capture_start() = sample::start();
  first.mutable_capture_start()->set_format_version(1);
  std::vector<std::string> expected{first.SerializeAsString()};
  for (const auto& record : records) {
    const auto done =
        record.has_chunk() ? (*writer)->append_chunk(sample::view_of(record.chunk())) : (*writer)->append(record);
    EXPECT_TRUE(done.has_value());
    expected.push_back(record.SerializeAsString());
  }
  EXPECT_TRUE((*writer)->finish().has_value());
  EXPECT_EQ((*writer)->bytes_written(), std::filesystem::file_size(path));
  return expected;
}

// Every frame of the file through zstd's streaming decompression: no code of ours.
std::string plain_zstd(const std::string& bytes) {
  ZSTD_DStream* stream = ZSTD_createDStream();
  std::string plain;
  std::string piece(1 << 16, '\0');
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  std::size_t left = 0;
  while (in.pos < in.size) {
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    left = ZSTD_decompressStream(stream, &out, &in);
    if (ZSTD_isError(left)) {
      ADD_FAILURE() << ZSTD_getErrorName(left);
      break;
    }
    plain.append(piece, 0, out.pos);
  }
  EXPECT_EQ(left, 0u);
  ZSTD_freeDStream(stream);
  return plain;
}

std::vector<std::string> delimited(const std::string& plain) {
  std::vector<std::string> records;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(plain.data()),
                                            static_cast<int>(plain.size()));
  uint32_t length = 0;
  while (in.ReadVarint32(&length)) {
    std::string record;
    EXPECT_TRUE(in.ReadString(&record, static_cast<int>(length)));
    records.push_back(record);
  }
  return records;
}

TEST(RoundTrip, EveryRecordComesBackInOrder) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  const auto expected = write(path, varied_records(1), {.block_bytes = 4096});
  const auto back = sample::read_all(path);
  EXPECT_EQ(back.records, expected);
  EXPECT_TRUE(back.damage.empty()) << back.damage.front().message;
  EXPECT_GT(back.blocks, 10u);
}

TEST(RoundTrip, ZstdAloneGivesLengthDelimitedRecords) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  const auto expected = write(path, varied_records(2), {.block_bytes = 4096});
  EXPECT_EQ(delimited(plain_zstd(sample::read_file(path))), expected);
}

TEST(RoundTrip, TheZstdCommandGivesTheSame) {
  if (std::system("zstd --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no zstd command here";
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  const auto expected = write(path, varied_records(3), {.block_bytes = 4096});
  ASSERT_EQ(std::system(("zstd -q -dc " + path + " > " + (folder.file("plain"))).c_str()), 0);
  EXPECT_EQ(delimited(sample::read_file(folder.file("plain"))), expected);
}

TEST(RoundTrip, EveryCompressionLevelReadsBack) {
  test::TemporaryDirectory folder;
  for (const int level : {-100, -5, -1, 1, 3, 9, 19}) {
    const auto path = folder.file("level" + std::to_string(level));
    const auto expected = write(path, varied_records(4), {.compression_level = level});
    EXPECT_EQ(sample::read_all(path).records, expected) << level;
  }
}

TEST(RoundTrip, AHandWrittenChunkIsWhatProtobufWrites) {
  test::TemporaryDirectory folder;
  std::vector<capture::Record> records;
  for (const uint64_t offset : {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{1} << 35, UINT64_MAX}) {
    for (const int64_t time : {int64_t{0}, int64_t{1}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
      for (const auto end : {capture::NOT_ENDED, capture::FIN, capture::RESET, capture::FAILED}) {
        auto record = chunk_record(offset, kDirections[offset % 2], offset, time, sample::noise(offset % 300, 5), end);
        if (end == capture::FAILED) record.mutable_chunk()->set_error("ECONNRESET");
        records.push_back(record);
      }
    }
  }
  const auto path = folder.file("a.ztape");
  const auto expected = write(path, records);
  EXPECT_EQ(sample::read_all(path).records, expected);
}

TEST(RoundTrip, AChunkLargerThanABlockMakesALargerBlock) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  const auto expected = write(path, {chunk_record(1, Direction::client_to_server, 0, 5, sample::noise(3 << 20, 6))});
  EXPECT_EQ(sample::read_all(path).records, expected);
}

TEST(RoundTrip, AHugeChunkIsSplitWithItsEndOnTheLastPart) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  const auto bytes = sample::noise((35 << 20) + 7, 7);
  auto writer = CaptureWriter::create(path, sample::start());
  ASSERT_TRUE((*writer)->append_chunk(
      {.connection = 1, .offset = 100, .time_ns = 5, .bytes = sample::span_of(bytes), .end = capture::FIN}));
  ASSERT_TRUE((*writer)->finish());
  auto reader = CaptureReader::open(path);
  ASSERT_TRUE(reader.has_value());
  std::string together;
  std::vector<capture::End> ends;
  while (const auto* record = (*reader)->next()) {
    if (!record->has_chunk()) continue;
    EXPECT_EQ(record->chunk().offset(), 100 + together.size());
    EXPECT_EQ(record->chunk().time_ns(), 5);
    together += record->chunk().bytes();
    ends.push_back(record->chunk().end());
  }
  EXPECT_TRUE((*reader)->damage().empty());
  EXPECT_TRUE(together == bytes);
  EXPECT_EQ(ends, (std::vector{capture::NOT_ENDED, capture::NOT_ENDED, capture::FIN}));
}

TEST(RoundTrip, TheSameRecordsGiveTheSameFile) {
  test::TemporaryDirectory folder;
  write(folder.file("a"), varied_records(8));
  write(folder.file("b"), varied_records(8));
  EXPECT_TRUE(sample::read_file(folder.file("a")) == sample::read_file(folder.file("b")));
}

}  // namespace
}  // namespace ztape
