// Where connections come in, and where they go: one hop through the proxy.
#pragma once

#include <memory>
#include <vector>

#include "net/address.h"

namespace ztape::proxy {

// Where a connection is relayed to.
struct Destination {
  net::Url url;
  std::vector<net::SocketAddress> addresses;  // tried in order
};

struct Route {
  std::vector<net::SocketAddress> listen_addresses;  // the first that can be used
  std::shared_ptr<const Destination> destination;
};

}  // namespace ztape::proxy
