#include "tests/support/frames.h"

#include <stdexcept>
#include <vector>

namespace ztape::test {

std::string u32(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string bytes = u32(static_cast<uint32_t>(payload.size())).substr(1);
  bytes += static_cast<char>(type);
  bytes += static_cast<char>(flags);
  bytes += u32(stream);
  bytes += payload;
  return bytes;
}

std::string settings(const std::vector<http2::Setting>& list) {
  std::string payload;
  for (const auto& setting : list) {
    payload += static_cast<char>(setting.id >> 8);
    payload += static_cast<char>(setting.id);
    payload += u32(setting.value);
  }
  return frame(http2::kSettings, 0, 0, payload);
}

std::string settings_ack() {
  return frame(http2::kSettings, http2::kAck, 0, "");
}

std::string rst_stream(uint32_t stream, uint32_t error_code) {
  return frame(http2::kRstStream, 0, stream, u32(error_code));
}

std::string goaway(uint32_t last_stream, uint32_t error_code, std::string_view debug) {
  return frame(http2::kGoaway, 0, 0, u32(last_stream) + u32(error_code) + std::string(debug));
}

std::string data(uint32_t stream, std::string_view payload, bool end_stream) {
  return frame(http2::kData, end_stream ? http2::kEndStream : 0, stream, payload);
}

std::string message(std::string_view body, bool compressed) {
  return std::string(1, compressed ? '\1' : '\0') + u32(static_cast<uint32_t>(body.size())) + std::string(body);
}

HeaderEncoder::HeaderEncoder(std::size_t table_bytes) {
  nghttp2_hd_deflater* deflater = nullptr;
  if (nghttp2_hd_deflate_new(&deflater, table_bytes) != 0) throw std::runtime_error("nghttp2_hd_deflate_new");
  deflater_.reset(deflater);
}

void HeaderEncoder::set_table_size(std::size_t bytes) {
  nghttp2_hd_deflate_change_table_size(deflater_.get(), bytes);
}

std::string HeaderEncoder::block(const http2::HeaderList& fields) {
  std::vector<nghttp2_nv> list;
  for (const auto& field : fields) {
    list.push_back({reinterpret_cast<uint8_t*>(const_cast<char*>(field.name.data())),
                    reinterpret_cast<uint8_t*>(const_cast<char*>(field.value.data())), field.name.size(),
                    field.value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  std::string block(nghttp2_hd_deflate_bound(deflater_.get(), list.data(), list.size()), '\0');
  const auto size = nghttp2_hd_deflate_hd(deflater_.get(), reinterpret_cast<uint8_t*>(block.data()), block.size(),
                                          list.data(), list.size());
  if (size < 0) throw std::runtime_error("nghttp2_hd_deflate_hd");
  block.resize(static_cast<std::size_t>(size));
  return block;
}

std::string HeaderEncoder::headers(uint32_t stream, const http2::HeaderList& fields, bool end_stream) {
  return frame(http2::kHeaders, http2::kEndHeaders | (end_stream ? http2::kEndStream : 0), stream, block(fields));
}

http2::HeaderList grpc_request(std::string_view path) {
  return {{":method", "POST"},         {":scheme", "http"}, {":path", std::string(path)},
          {":authority", "localhost"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
}

http2::HeaderList grpc_response() {
  return {{":status", "200"}, {"content-type", "application/grpc"}};
}

http2::HeaderList grpc_trailers(int status, std::string_view text) {
  return {{"grpc-status", std::to_string(status)}, {"grpc-message", std::string(text)}};
}

}  // namespace ztape::test
