#include "http2/decompress.h"

#include <zlib.h>

#include <array>
#include <memory>

namespace ztape::http2 {
namespace {

constexpr int kGzipOrZlibWindowBits = 15 + 32;  // zlib.h: 32 detects the header

struct InflateEnd {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};

}  // namespace

Result<std::string> decompress(std::string_view encoding, std::string_view bytes, uint64_t max_bytes) {
  if (encoding == "identity") return std::string(bytes);
  if (encoding != "gzip" && encoding != "deflate") {
    return std::unexpected(
        Error{ErrorCode::protocol, "message encoding '" + std::string(encoding) + "' is not known", ""});
  }
  z_stream stream{};
  if (inflateInit2(&stream, kGzipOrZlibWindowBits) != Z_OK) {
    return std::unexpected(Error{ErrorCode::protocol, "zlib did not start", ""});
  }
  const std::unique_ptr<z_stream, InflateEnd> owner(&stream);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib only reads it
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  std::array<char, 16384> piece;
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = piece.size();
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - stream.avail_out);
    if (out.size() > max_bytes) {
      return std::unexpected(Error{ErrorCode::over_limit, "the message is too large when decompressed", ""});
    }
  }
  if (status != Z_STREAM_END) {
    return std::unexpected(
        Error{ErrorCode::protocol, "the message does not decompress as " + std::string(encoding), ""});
  }
  return out;
}

}  // namespace ztape::http2
