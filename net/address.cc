#include "net/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

namespace ztape::net {
namespace {

constexpr std::string_view kForms = "write 127.0.0.1:9067, :9067, [::1]:9067, localhost:9067 or http://...";

std::unexpected<Error> bad(std::string_view text, const std::string& message) {
  return std::unexpected(Error{.code = ErrorCode::address, .message = message, .subject = std::string(text)});
}

std::string with_brackets(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

// An IPv4-mapped address is shown and judged as the IPv4 address it stands for.
bool as_ipv4(const sockaddr_storage& storage, in_addr& address) {
  if (storage.ss_family == AF_INET) {
    address = reinterpret_cast<const sockaddr_in&>(storage).sin_addr;
    return true;
  }
  if (storage.ss_family != AF_INET6) return false;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
  if (!IN6_IS_ADDR_V4MAPPED(&v6)) return false;
  std::memcpy(&address, &v6.s6_addr[12], sizeof(address));
  return true;
}

}  // namespace

bool is_ip_address(const std::string& text) {
  in6_addr parsed{};
  return inet_pton(AF_INET, text.c_str(), &parsed) == 1 || inet_pton(AF_INET6, text.c_str(), &parsed) == 1;
}

std::string Url::authority() const {
  return with_brackets(host.empty() ? "localhost" : host) + ":" + std::to_string(port);
}

socklen_t SocketAddress::size() const {
  return storage.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

uint16_t SocketAddress::port() const {
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

std::string SocketAddress::text() const {
  char buffer[INET6_ADDRSTRLEN] = "";
  in_addr v4{};
  if (as_ipv4(storage, v4)) {
    inet_ntop(AF_INET, &v4, buffer, sizeof(buffer));
    return std::string(buffer) + ":" + std::to_string(port());
  }
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    inet_ntop(AF_INET6, &v6.sin6_addr, buffer, sizeof(buffer));
    return "[" + std::string(buffer) + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  return "";
}

std::string SocketAddress::host() const {
  auto host = text();
  host.resize(std::min(host.rfind(':'), host.size()));
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

bool SocketAddress::loopback_or_private() const {
  in_addr v4{};
  if (as_ipv4(storage, v4)) {
    const uint32_t address = ntohl(v4.s_addr);
    const auto within = [&](uint32_t network, int bits) {
      return (address >> (32 - bits)) == (network >> (32 - bits));
    };
    // RFC 1122 (loopback), RFC 1918 (private), RFC 3927 (link local).
    return within(0x7f000000, 8) || within(0x0a000000, 8) || within(0xac100000, 12) || within(0xc0a80000, 16) ||
           within(0xa9fe0000, 16);
  }
  if (storage.ss_family != AF_INET6) return false;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
  // RFC 4291 (loopback, link local), RFC 4193 (unique local).
  return IN6_IS_ADDR_LOOPBACK(&v6) || IN6_IS_ADDR_LINKLOCAL(&v6) || (v6.s6_addr[0] & 0xfe) == 0xfc;
}

Result<Url> parse_url(std::string_view text) {
  Url url;
  url.text = text;
  if (text.empty()) return bad(text, "an empty address: " + std::string(kForms));
  std::string_view rest = text;
  if (const auto scheme_end = rest.find("://"); scheme_end != std::string_view::npos) {
    const auto scheme = rest.substr(0, scheme_end);
    if (scheme != "http" && scheme != "https") {
      return bad(text, "the scheme '" + std::string(scheme) + "' is not http or https");
    }
    url.tls = scheme == "https";
    rest.remove_prefix(scheme_end + 3);
    if (rest.ends_with('/')) rest.remove_suffix(1);
  }
  if (const auto slash = rest.find_first_of("/?#"); slash != std::string_view::npos) {
    return bad(text, "a path, '" + std::string(rest.substr(slash)) + "', does not belong into an address");
  }
  if (rest.find('@') != std::string_view::npos) return bad(text, "a user name does not belong into an address");

  std::string_view port;
  if (rest.starts_with('[')) {
    const auto bracket = rest.find(']');
    if (bracket == std::string_view::npos) return bad(text, "']' is missing");
    url.host = rest.substr(1, bracket - 1);
    in6_addr ignored{};
    if (inet_pton(AF_INET6, url.host.c_str(), &ignored) != 1) {
      return bad(text, "'" + url.host + "' is not an IPv6 address");
    }
    rest.remove_prefix(bracket + 1);
    if (!rest.starts_with(':')) return bad(text, "the port is missing: " + std::string(kForms));
    port = rest.substr(1);
  } else {
    const auto colon = rest.find(':');
    if (colon == std::string_view::npos) return bad(text, "the port is missing: " + std::string(kForms));
    if (rest.find(':', colon + 1) != std::string_view::npos) {
      return bad(text, "an IPv6 address needs brackets: [::1]:9067");
    }
    url.host = rest.substr(0, colon);
    if (!std::all_of(url.host.begin(), url.host.end(), is_host_character)) {
      return bad(text, "'" + url.host + "' is not a host name or an address");
    }
    port = rest.substr(colon + 1);
  }
  if (port.empty()) return bad(text, "the port is missing: " + std::string(kForms));
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (error == std::errc::result_out_of_range) return bad(text, "the port is above 65535");
  if (error != std::errc() || end != port.data() + port.size()) {
    return bad(text, "'" + std::string(port) + "' is not a port");
  }
  return url;
}

Result<std::vector<SocketAddress>> resolve(const Url& url, bool for_listening) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (for_listening ? AI_PASSIVE : 0);
  addrinfo* first = nullptr;
  const int status =
      getaddrinfo(url.host.empty() ? nullptr : url.host.c_str(), std::to_string(url.port).c_str(), &hints, &first);
  if (status != 0) {
    const std::string reason = status == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(status);
    return bad(url.text, "'" + url.host + "' has no address: " + reason);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(first, &freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const auto* entry = first; entry; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    std::memcpy(&addresses.emplace_back().storage, entry->ai_addr, entry->ai_addrlen);
  }
  if (addresses.empty()) return bad(url.text, "'" + url.host + "' has no address");
  if (for_listening && url.host.empty()) {
    std::stable_sort(addresses.begin(), addresses.end(), [](const SocketAddress& a, const SocketAddress& b) {
      return a.storage.ss_family == AF_INET6 && b.storage.ss_family != AF_INET6;
    });
  }
  return addresses;
}

}  // namespace ztape::net
