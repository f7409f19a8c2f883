#include "proxy/authority_watch.h"

#include <string_view>

#include "net/address.h"
#include "proto/capture.pb.h"

namespace ztape::proxy {
namespace {

// "zec.rocks" of "zec.rocks:443".
std::string host_of(std::string_view authority) {
  if (authority.starts_with('[')) return std::string(authority.substr(0, authority.find(']') + 1));
  return http2::lower_case(authority.substr(0, authority.find(':')));
}

// What a server on a private machine is reached by says nothing of its name.
bool is_name(const std::string& host) {
  return host.find_first_not_of("0123456789.:[]") != std::string::npos && host.find(':') == std::string::npos &&
         host != "localhost";
}

// A wallet's words go to a terminal.
std::string shown(std::string_view text) {
  std::string result;
  for (const unsigned char byte : text.substr(0, 80))
    result += byte > 0x20 && byte < 0x7f ? static_cast<char>(byte) : '?';
  return result;
}

}  // namespace

void AuthorityWatch::opened(const capture::ConnectionOpen& open) {
  if (told_.size() >= kMostTold) return;
  std::string name = open.upstream_tls().server_name();
  if (name.empty()) {
    const auto url = net::parse_url(open.upstream_url());
    if (!url) return;
    name = url->host;
  }
  name = http2::lower_case(name);
  if (is_name(name)) awaited_[open.connection()] = std::move(name);
}

void AuthorityWatch::read(ConnectionId connection, const http2::HeaderList& fields) {
  if (awaited_.empty()) return;
  const auto found = awaited_.find(connection);
  if (found == awaited_.end()) return;
  const auto name = std::move(found->second);
  awaited_.erase(found);
  if (const auto* const authority = http2::find_header(fields, ":authority")) {
    const auto asked = host_of(*authority);
    if (asked == name || told_.size() >= kMostTold || !told_.emplace(asked, name).second) return;
    if (on_notice_) {
      on_notice_("a wallet asks for '" + shown(*authority) + "', and the upstream is " + name +
                 ": a server that goes by names may refuse that; it is forwarded as it is (docs/tls.md, \"The name\")");
    }
  }
}

}  // namespace ztape::proxy
