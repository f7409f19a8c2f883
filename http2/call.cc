#include "http2/call.h"

namespace ztape::http2 {
namespace {

constexpr int kFirstHttpError = 400;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string_view name(EndedBy ended_by) {
  switch (ended_by) {
    case EndedBy::still_open: return "still_open";
    case EndedBy::trailers: return "trailers";
    case EndedBy::client_reset: return "client_reset";
    case EndedBy::server_reset: return "server_reset";
    case EndedBy::goaway: return "goaway";
    case EndedBy::client_close: return "client_close";
    case EndedBy::server_close: return "server_close";
  }
  return "";
}

std::string_view name(Content content) {
  switch (content) {
    case Content::grpc: return "grpc";
    case Content::grpc_web: return "grpc-web";
    case Content::grpc_web_text: return "grpc-web-text";
    case Content::other: return "http";
  }
  return "";
}

Content content_of(const HeaderList& fields) {
  const auto* type = find_header(fields, "content-type");
  if (!type || !type->starts_with("application/grpc")) return Content::other;
  if (type->starts_with("application/grpc-web-text")) return Content::grpc_web_text;
  return type->starts_with("application/grpc-web") ? Content::grpc_web : Content::grpc;
}

std::string_view name(HttpVersion version) {
  switch (version) {
    case HttpVersion::http1_0: return "1.0";
    case HttpVersion::http1_1: return "1.1";
    case HttpVersion::http2: return "2";
  }
  return "";
}

bool is_error(const Call& call) {
  switch (call.ended_by) {
    case EndedBy::trailers: break;
    case EndedBy::server_reset:
    case EndedBy::goaway:
    case EndedBy::server_close: return true;
    case EndedBy::client_reset:
    case EndedBy::client_close:
    case EndedBy::still_open: return false;
  }
  if (call.grpc_status) return *call.grpc_status != 0;
  return call.content != Content::other || !call.http_status || *call.http_status >= kFirstHttpError;
}

std::string percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high >= 0 && low >= 0) {
        out += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

void read_grpc_status(const HeaderList& fields, Call& call) {
  if (const auto status = find_number(fields, "grpc-status")) call.grpc_status = status;
  if (const auto* message = find_header(fields, "grpc-message")) call.grpc_message = percent_decode(*message);
}

std::string why_not_grpc(const HeaderList& fields) {
  const auto* type = find_header(fields, "content-type");
  return "the answer is " + (type ? *type : std::string("without a content-type")) + ", not gRPC";
}

}  // namespace ztape::http2
