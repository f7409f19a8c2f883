#include "http2/hpack_inflater.h"

#include <algorithm>
#include <new>

#include "http2/connection_reader.h"

namespace ztape::http2 {
namespace {

constexpr std::size_t kFieldOverheadBytes = 32;  // RFC 9113, section 6.5.2
constexpr std::size_t kUsualFields = 12;         // a gRPC request has about ten

std::string text_of(const uint8_t* bytes, std::size_t size) {
  return std::string(reinterpret_cast<const char*>(bytes), size);
}

}  // namespace

HpackInflater::HpackInflater() {
  nghttp2_hd_inflater* inflater = nullptr;
  if (nghttp2_hd_inflate_new(&inflater) != 0) throw std::bad_alloc();
  inflater_.reset(inflater);
}

void HpackInflater::set_table_size(uint32_t bytes) {
  // Fails only in the middle of a block, where no SETTINGS ACK can stand.
  nghttp2_hd_inflate_change_table_size(inflater_.get(), std::min(bytes, kMaxHpackTableBytes));
}

Result<HeaderList> HpackInflater::inflate(std::span<const uint8_t> block) {
  HeaderList fields;
  fields.reserve(kUsualFields);
  std::size_t list_bytes = 0;
  const uint8_t* next = block.data();
  std::size_t left = block.size();
  for (;;) {
    nghttp2_nv field{};
    int flags = 0;
    const auto used = nghttp2_hd_inflate_hd2(inflater_.get(), &field, &flags, next, left, 1);
    if (used < 0) {
      return std::unexpected(
          Error{ErrorCode::protocol, std::string("HPACK: ") + nghttp2_strerror(static_cast<int>(used)), ""});
    }
    next += used;
    left -= static_cast<std::size_t>(used);
    if (flags & NGHTTP2_HD_INFLATE_EMIT) {
      list_bytes += field.namelen + field.valuelen + kFieldOverheadBytes;
      if (list_bytes > kMaxHeaderListBytes) {
        return std::unexpected(Error{ErrorCode::over_limit, "HPACK: the header list is larger than 1 MiB", ""});
      }
      fields.push_back({text_of(field.name, field.namelen), text_of(field.value, field.valuelen)});
    }
    if (flags & NGHTTP2_HD_INFLATE_FINAL) break;
    if (!(flags & NGHTTP2_HD_INFLATE_EMIT) && left == 0) break;
  }
  nghttp2_hd_inflate_end_headers(inflater_.get());
  return fields;
}

}  // namespace ztape::http2
