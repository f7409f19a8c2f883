// Where connections come in, and where they go: one hop through the proxy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/address.h"

namespace ztape::proxy {

// Where a connection is relayed to.
struct Destination {
  net::Url url;                               // https: TLS to it
  std::vector<net::SocketAddress> addresses;  // tried in order
  // Whom its certificate has to be for, and the SNI; "": the wallet's SNI, or the URL's host where there is none.
  std::string server_name;
};

struct Route {
  std::vector<net::SocketAddress> listen_addresses;  // the first that can be used
  int passed_socket = -1;                            // or one that listens already: the intake takes it over
  std::shared_ptr<const Destination> destination;    // nullptr: each connection's own (IntakeOptions::transparent)
  bool tls = false;                                  // the listener serves TLS
  bool plaintext = false;                            // it was said to be http://
};

}  // namespace ztape::proxy
