// The capture reader and verify on whatever bytes: as they are, and once more with the checksums made right, so that
// what lies behind them is reached. What must hold: no crash; damage lies within the file; and a file without damage
// holds, for zstd alone, exactly the records that were read.
#define ZSTD_STATIC_LINKING_ONLY  // to ignore a frame's checksum while it is made right
#include <google/protobuf/io/coded_stream.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "capture-format/layout.h"
#include "capture-format/verify.h"

namespace {

using namespace ztape;

void expect(bool holds) {
  if (!holds) std::abort();
}

void put_le(std::string& bytes, std::size_t at, uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

uint64_t get_le(const std::string& bytes, std::size_t at, std::size_t width) {
  uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i)
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return value;
}

using Context = std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)>;

// All frames by zstd alone. False: not a zstd file.
bool plain_zstd(const std::string& bytes, std::string& plain) {
  Context context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  std::string piece(1 << 16, '\0');
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  std::size_t left = 0;
  while (in.pos < in.size) {
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left)) return false;
    plain.append(piece, 0, out.pos);
  }
  return left == 0;
}

// The content checksum of zstd's, the data checksum and the header's own, of every block that stands where one can.
void make_checksums_right(std::string& bytes) {
  const std::span<const uint8_t> all(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  for (std::size_t at = 0; (at = layout::find_candidate(all, at)) != std::string::npos; ++at) {
    if (at + layout::kHeaderBytes > bytes.size()) break;
    const std::size_t frame = at + layout::kHeaderBytes;
    const uint64_t length = get_le(bytes, at + 56, 4);
    if (bytes[at + 14] == 1 && length <= bytes.size() - frame) {
      const auto content = ZSTD_getFrameContentSize(bytes.data() + frame, length);
      if (content < (1 << 20) && length > 4) {
        Context context(ZSTD_createDCtx(), ZSTD_freeDCtx);
        ZSTD_DCtx_setParameter(context.get(), ZSTD_d_forceIgnoreChecksum, ZSTD_d_ignoreChecksum);
        std::string plain(content, '\0');
        const auto got = ZSTD_decompressDCtx(context.get(), plain.data(), content, bytes.data() + frame, length);
        if (!ZSTD_isError(got)) put_le(bytes, frame + length - 4, XXH64(plain.data(), got, 0), 4);
      }
      put_le(bytes, at + 68, XXH3_64bits(bytes.data() + frame, length), 8);
    }
    put_le(bytes, at + 76, XXH3_64bits(bytes.data() + at, 76), 8);
  }
}

void read(const std::string& bytes) {
  auto reader = CaptureReader::open_bytes(bytes, "fuzz");
  if (!reader) return;
  uint64_t records = 0;
  std::string kinds;  // of the records, to compare with zstd's
  while (const auto* record = (*reader)->next()) {
    ++records;
    kinds.push_back(static_cast<char>(record->kind_case()));
  }
  expect((*reader)->next() == nullptr);
  expect((*reader)->records_read() == records);
  for (const auto& damage : (*reader)->damage()) {
    expect(damage.offset <= bytes.size() && damage.bytes <= bytes.size() - damage.offset);
    expect(!damage.message.empty());
  }
  if ((*reader)->damage().empty()) {
    std::string plain;
    expect(plain_zstd(bytes, plain));
    google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(plain.data()),
                                              static_cast<int>(plain.size()));
    std::string by_zstd;
    uint32_t length = 0;
    capture::Record record;
    while (in.ReadVarint32(&length)) {
      std::string one;
      expect(in.ReadString(&one, static_cast<int>(length)) && record.ParseFromString(one));
      by_zstd.push_back(static_cast<char>(record.kind_case()));
    }
    expect(by_zstd == kinds);
  }
  auto again = CaptureReader::open_bytes(bytes, "fuzz");
  expect(again.has_value());
  const auto report = verify(**again);
  expect(report.records == records);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(input), size);
  read(bytes);
  make_checksums_right(bytes);
  read(bytes);
  return 0;
}
