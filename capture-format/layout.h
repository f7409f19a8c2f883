// The bytes of a capture file that are not zstd's: block headers, the trailer, the seek table (FORMAT.md). Pure
// functions over bytes; knows no file. Private to this folder and its tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ztape::layout {

inline constexpr uint16_t kFormatVersion = 1;
inline constexpr uint32_t kHeaderMagic = 0x184D2A5A;     // a zstd skippable frame
inline constexpr uint32_t kSeekTableMagic = 0x184D2A5E;  // zstd_seekable_compression_format.md
inline constexpr uint32_t kSeekTableFooterMagic = 0x8F92EAB1;
inline constexpr std::string_view kIdentity = "ztap";

inline constexpr std::size_t kHeaderBytes = 84;          // of version 1, the frame's own 8 bytes included
inline constexpr std::size_t kHeaderChecksumBytes = 8;   // the end of a header of any version
inline constexpr std::size_t kMaxAnyHeaderBytes = 4096;  // of any version

inline constexpr std::size_t kMaxBlockBytes = std::size_t{64} << 20;  // decompressed
inline constexpr uint32_t kMaxBlockRecords = uint32_t{1} << 20;
inline constexpr std::size_t kMaxRecordBytes = std::size_t{24} << 20;
inline constexpr std::size_t kMaxChunkBytes = std::size_t{16} << 20;  // a longer one is split
// The seekable format's limit is 0x8000000 frames; a block is two, the trailer one.
inline constexpr uint64_t kMaxBlocks = (0x8000000 - 1) / 2;

enum class Kind : uint8_t { block = 1, trailer = 2 };

struct Header {
  Kind kind = Kind::block;
  uint64_t capture_id = 0;
  uint64_t number = 0;        // of the block; in the trailer: how many blocks there are
  uint64_t first_record = 0;  // records in all blocks before
  int64_t first_time_ns = 0;
  int64_t last_time_ns = 0;
  uint32_t compressed_bytes = 0;
  uint32_t decompressed_bytes = 0;
  uint32_t record_count = 0;
  uint64_t checksum = 0;  // XXH3-64 of the compressed bytes; in the trailer: of the block headers' own checksums
};

using HeaderBytes = std::array<uint8_t, kHeaderBytes>;

HeaderBytes encode(const Header& header);

// A header of any version whose own checksum is right.
struct Identified {
  uint16_t version = 0;
  std::size_t header_bytes = 0;
};
std::optional<Identified> identify(std::span<const uint8_t> bytes);

// A whole header of this version with a right checksum at the start of `bytes`.
std::optional<Header> decode(std::span<const uint8_t> bytes);

// The header's own checksum, its last 8 bytes.
uint64_t own_checksum(const HeaderBytes& bytes);

// True if `bytes`, fewer than a whole header, may be the start of `header`'s bytes: compares what can be known before
// the block has been made (all up to and with first_record).
bool may_begin(std::span<const uint8_t> bytes, const Header& header);

// Where "ztap" stands at the place it has in a header, from `from` on: the offset of that header; npos if nowhere.
std::size_t find_candidate(std::span<const uint8_t> bytes, std::size_t from);

// What the seek table says of one block.
struct BlockSizes {
  uint64_t number = 0;
  uint32_t compressed_bytes = 0;
  uint32_t decompressed_bytes = 0;
};

inline constexpr std::size_t kSeekEntryBytes = 8;
// The whole skippable frame: 8 of its own, two entries a block, one of the trailer, a footer of 9.
constexpr uint64_t seek_table_bytes(uint64_t block_count) {
  return 8 + kSeekEntryBytes * (2 * block_count + 1) + 9;
}
// Where in the frame the entry of block `number`'s zstd frame stands.
constexpr uint64_t seek_entry_offset(uint64_t number) {
  return 8 + kSeekEntryBytes * (2 * number + 1);
}
// The first `limit` bytes of it. `blocks` ascend; a block that is not in it gets zeros in its zstd frame's entry.
std::string seek_table(std::span<const BlockSizes> blocks, uint64_t block_count, uint64_t limit = UINT64_MAX);

}  // namespace ztape::layout
