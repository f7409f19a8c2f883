// Writes HTTP/2 frames for tests; header blocks are by nghttp2's deflater, so that our own code does not judge itself.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "http2/frame.h"

namespace ztape::test {

std::string frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload);
std::string settings(const std::vector<http2::Setting>& list);
std::string settings_ack();
std::string rst_stream(uint32_t stream, uint32_t error_code);
std::string goaway(uint32_t last_stream, uint32_t error_code, std::string_view debug);
std::string data(uint32_t stream, std::string_view payload, bool end_stream);
std::string u32(uint32_t value);
// A length-prefixed gRPC message.
std::string message(std::string_view body, bool compressed = false);

class HeaderEncoder {
 public:
  explicit HeaderEncoder(std::size_t table_bytes = 4096);
  std::string block(const http2::HeaderList& fields);
  std::string headers(uint32_t stream, const http2::HeaderList& fields, bool end_stream);
  // The encoder takes a new table size, as after a SETTINGS of its peer.
  void set_table_size(std::size_t bytes);

 private:
  struct Delete {
    void operator()(nghttp2_hd_deflater* deflater) const { nghttp2_hd_deflate_del(deflater); }
  };
  std::unique_ptr<nghttp2_hd_deflater, Delete> deflater_;
};

http2::HeaderList grpc_request(std::string_view path);
http2::HeaderList grpc_response();
http2::HeaderList grpc_trailers(int status, std::string_view message = "");

}  // namespace ztape::test
