// Addresses and URLs as people write them: 127.0.0.1:9067, :9067, [::1]:9067, localhost:9067, http://…, https://….
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/error.h"

namespace ztape::net {

struct Url {
  bool tls = false;  // https
  std::string host;  // without brackets; "" means every local address for a listener, loopback for a target
  uint16_t port = 0;
  std::string text;                             // as it was written
  [[nodiscard]] std::string authority() const;  // "host:port", brackets where needed: the :authority of requests
};

// An IPv4 or IPv6 address, without port or brackets.
bool is_ip_address(const std::string& text);

// One socket address of either family.
struct SocketAddress {
  sockaddr_storage storage{};
  [[nodiscard]] const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] socklen_t size() const;  // of what raw() points to
  [[nodiscard]] uint16_t port() const;
  [[nodiscard]] std::string text() const;  // "127.0.0.1:9067", "[::1]:9067"
  [[nodiscard]] std::string host() const;  // of that: "127.0.0.1", "::1"
  [[nodiscard]] bool loopback_or_private() const;
};

// A bare address is http. Errors: address, saying what is wrong with the text.
Result<Url> parse_url(std::string_view text);
// Blocking getaddrinfo, in the system's order. An empty host is every local address (first the IPv6 one, which takes
// IPv4 too) where `for_listening`, loopback otherwise. Errors: address.
Result<std::vector<SocketAddress>> resolve(const Url& url, bool for_listening = false);

}  // namespace ztape::net
