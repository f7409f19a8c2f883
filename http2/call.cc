#include "http2/call.h"

namespace ztape::http2 {
namespace {

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

}  // namespace ztape::http2
