#include "capture-format/layout.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace ztape::layout {
namespace {

// Little-endian, whatever the machine.
template <typename T>
void put(uint8_t*& at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) *at++ = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
}

template <typename T>
T get(const uint8_t* at) {
  uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<uint64_t>(at[i]) << (8 * i);
  return static_cast<T>(value);
}

// FORMAT.md, "Block header".
constexpr std::size_t kIdentityAt = 8;
constexpr std::size_t kKnownBeforehand = 40;  // magic to first_record

}  // namespace

HeaderBytes encode(const Header& header) {
  HeaderBytes bytes;
  uint8_t* at = bytes.data();
  put(at, kHeaderMagic);
  put(at, static_cast<uint32_t>(kHeaderBytes - 8));
  at = std::copy(kIdentity.begin(), kIdentity.end(), at);
  put(at, kFormatVersion);
  put(at, static_cast<uint8_t>(header.kind));
  put(at, uint8_t{0});
  put(at, header.capture_id);
  put(at, header.number);
  put(at, header.first_record);
  put(at, header.first_time_ns);
  put(at, header.last_time_ns);
  put(at, header.compressed_bytes);
  put(at, header.decompressed_bytes);
  put(at, header.record_count);
  put(at, header.checksum);
  put(at, static_cast<uint64_t>(XXH3_64bits(bytes.data(), kHeaderBytes - kHeaderChecksumBytes)));
  return bytes;
}

std::optional<Identified> identify(std::span<const uint8_t> bytes) {
  constexpr std::size_t kSmallest = kIdentityAt + 4 + 2 + kHeaderChecksumBytes;
  if (bytes.size() < kSmallest || get<uint32_t>(bytes.data()) != kHeaderMagic) return std::nullopt;
  if (std::memcmp(bytes.data() + kIdentityAt, kIdentity.data(), kIdentity.size()) != 0) return std::nullopt;
  const uint64_t whole = uint64_t{8} + get<uint32_t>(bytes.data() + 4);
  if (whole < kSmallest || whole > kMaxAnyHeaderBytes || whole > bytes.size()) return std::nullopt;
  const std::size_t covered = whole - kHeaderChecksumBytes;
  if (get<uint64_t>(bytes.data() + covered) != XXH3_64bits(bytes.data(), covered)) return std::nullopt;
  return Identified{.version = get<uint16_t>(bytes.data() + 12), .header_bytes = static_cast<std::size_t>(whole)};
}

std::optional<Header> decode(std::span<const uint8_t> bytes) {
  const auto found = identify(bytes);
  if (!found || found->version != kFormatVersion || found->header_bytes != kHeaderBytes) return std::nullopt;
  const uint8_t* at = bytes.data();
  Header header;
  if (at[14] != 1 && at[14] != 2) return std::nullopt;
  if (at[15] != 0) return std::nullopt;
  header.kind = static_cast<Kind>(at[14]);
  header.capture_id = get<uint64_t>(at + 16);
  header.number = get<uint64_t>(at + 24);
  header.first_record = get<uint64_t>(at + 32);
  header.first_time_ns = get<int64_t>(at + 40);
  header.last_time_ns = get<int64_t>(at + 48);
  header.compressed_bytes = get<uint32_t>(at + 56);
  header.decompressed_bytes = get<uint32_t>(at + 60);
  header.record_count = get<uint32_t>(at + 64);
  header.checksum = get<uint64_t>(at + 68);
  if (header.number > kMaxBlocks) return std::nullopt;
  return header;
}

uint64_t own_checksum(const HeaderBytes& bytes) {
  return get<uint64_t>(bytes.data() + kHeaderBytes - kHeaderChecksumBytes);
}

bool may_begin(std::span<const uint8_t> bytes, const Header& header) {
  const HeaderBytes expected = encode(header);
  return std::memcmp(bytes.data(), expected.data(), std::min(bytes.size(), kKnownBeforehand)) == 0;
}

std::size_t find_candidate(std::span<const uint8_t> bytes, std::size_t from) {
  while (from + kIdentityAt + kIdentity.size() <= bytes.size()) {
    const uint8_t* start = bytes.data() + from + kIdentityAt;
    const void* hit = memmem(start, bytes.size() - from - kIdentityAt, kIdentity.data(), kIdentity.size());
    if (hit == nullptr) break;
    const auto at = static_cast<std::size_t>(static_cast<const uint8_t*>(hit) - bytes.data()) - kIdentityAt;
    if (get<uint32_t>(bytes.data() + at) == kHeaderMagic) return at;
    from = at + 1;
  }
  return std::string::npos;
}

std::string seek_table(std::span<const BlockSizes> blocks, uint64_t block_count, uint64_t limit) {
  const uint64_t whole = seek_table_bytes(block_count);
  std::string bytes;
  bytes.reserve(std::min(whole, limit) + 2 * kSeekEntryBytes);
  const auto add32 = [&bytes](uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  };
  add32(kSeekTableMagic);
  add32(static_cast<uint32_t>(whole - 8));
  auto known = blocks.begin();
  for (uint64_t number = 0; number < block_count && bytes.size() < limit; ++number) {
    while (known != blocks.end() && known->number < number) ++known;
    const bool here = known != blocks.end() && known->number == number;
    add32(kHeaderBytes);
    add32(0);
    add32(here ? known->compressed_bytes : 0);
    add32(here ? known->decompressed_bytes : 0);
  }
  add32(kHeaderBytes);  // the trailer
  add32(0);
  add32(static_cast<uint32_t>(2 * block_count + 1));
  bytes.push_back(0);  // no checksums: zstd's own and ours are there already
  add32(kSeekTableFooterMagic);
  if (bytes.size() > limit) bytes.resize(limit);
  return bytes;
}

}  // namespace ztape::layout
