#include "net/original_destination.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "net/socket_options.h"

namespace ztape::net {
namespace {

// linux/netfilter_ipv4.h, linux/netfilter_ipv6/ip6_tables.h: those headers do not go together with netinet/in.h.
constexpr int kOriginalDestination = 80;

SocketAddress unmapped(const SocketAddress& address) {
  if (address.storage.ss_family != AF_INET6) return address;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
  if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return address;
  SocketAddress plain;
  auto& v4 = reinterpret_cast<sockaddr_in&>(plain.storage);
  v4.sin_family = AF_INET;
  v4.sin_port = v6.sin6_port;
  std::memcpy(&v4.sin_addr, &v6.sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
  return plain;
}

}  // namespace

SocketAddress original_destination(int fd) {
  const auto local = unmapped(local_address(fd));
  const int level = local.storage.ss_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
  SocketAddress original;
  socklen_t size = sizeof(original.storage);
  if (getsockopt(fd, level, kOriginalDestination, &original.storage, &size) != 0) return local;
  return original;
}

bool is_address_of_this_machine(const SocketAddress& address) {
  const auto host = address.host();
  if (host.starts_with("127.")) return true;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  bool found = false;
  for (const auto* each = all; each && !found; each = each->ifa_next) {
    if (!each->ifa_addr) continue;
    SocketAddress own;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    std::memcpy(&own.storage, each->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    found = own.host() == host;
  }
  freeifaddrs(all);
  return found;
}

}  // namespace ztape::net
