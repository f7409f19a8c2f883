#include "capture-format/raw_frame.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace ztape {
namespace {

// libzstd checks the content size and the content checksum.
std::string decompressed(const uint8_t* frame, std::size_t size) {
  EXPECT_EQ(ZSTD_findFrameCompressedSize(frame, size), size);
  const auto length = ZSTD_getFrameContentSize(frame, size);
  if (length == ZSTD_CONTENTSIZE_ERROR || length == ZSTD_CONTENTSIZE_UNKNOWN) return "no content size";
  std::string content(length, '\0');
  const std::size_t got = ZSTD_decompress(content.data(), content.size(), frame, size);
  if (ZSTD_isError(got)) return ZSTD_getErrorName(got);
  return content;
}

std::span<const uint8_t> span_of(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

TEST(RawFrame, IsAZstdFrameOfWhatWasPutIntoIt) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 numbers(seed);
    std::string content;
    std::vector<std::size_t> pieces(numbers() % 60);
    std::size_t total = 0;
    for (auto& piece : pieces) {
      piece = numbers() % 4 == 0 ? numbers() % 400'000 : numbers() % (RawFrame::kLargestPiece + 1);
      total += piece;
    }
    std::vector<uint8_t> room(RawFrame::bound(total));
    RawFrame frame;
    frame.begin(room.data(), room.size());
    for (const std::size_t piece : pieces) {
      ASSERT_TRUE(frame.fits(piece));
      std::string bytes(piece, '\0');
      for (char& c : bytes) c = static_cast<char>(numbers());
      if (piece <= RawFrame::kLargestPiece && numbers() % 2 == 0) {
        std::memcpy(frame.place(piece), bytes.data(), piece);
      } else {
        frame.append(span_of(bytes));
      }
      content += bytes;
      if (numbers() % 8 == 0) {
        std::vector<uint8_t> other(room.size() + numbers() % 1000);
        std::memcpy(other.data(), room.data(), frame.bytes_so_far());
        frame.moved(other.data(), other.size());
        room.swap(other);  // the old bytes are gone
      }
    }
    EXPECT_EQ(frame.content_bytes(), content.size());
    const std::size_t size = frame.finish();
    ASSERT_LE(size, room.size());
    EXPECT_TRUE(decompressed(room.data(), size) == content);
    EXPECT_EQ(frame.finish(), size);
    EXPECT_TRUE(decompressed(room.data(), size) == content);
  }
}

TEST(RawFrame, TheBoundHoldsForTheSmallestBlocks) {
  // Pieces after which the largest one just does not fit: as many block headers as there can be.
  const std::size_t least = 128 * 1024 - RawFrame::kLargestPiece + 1;
  std::string content;
  std::vector<uint8_t> room(RawFrame::bound(64 * (least + RawFrame::kLargestPiece)));
  RawFrame frame;
  frame.begin(room.data(), room.size());
  for (int i = 0; i < 64; ++i) {
    const std::string bytes(least, static_cast<char>('a' + i % 26));
    frame.append(span_of(bytes));
    std::memset(frame.place(RawFrame::kLargestPiece), 'z', RawFrame::kLargestPiece);
    content += bytes + std::string(RawFrame::kLargestPiece, 'z');
  }
  const std::size_t size = frame.finish();
  EXPECT_LE(size, room.size());
  EXPECT_TRUE(decompressed(room.data(), size) == content);
}

TEST(RawFrame, AFlippedByteIsNoticed) {
  std::vector<uint8_t> room(RawFrame::bound(1000));
  RawFrame frame;
  frame.begin(room.data(), room.size());
  frame.append(span_of(std::string(1000, 'x')));
  const std::size_t size = frame.finish();
  room[500] ^= 1;
  EXPECT_NE(decompressed(room.data(), size), std::string(1000, 'x'));
}

}  // namespace
}  // namespace ztape
