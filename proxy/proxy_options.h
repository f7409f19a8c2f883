// What a proxy is to do, as far as its connections are concerned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "net/socket_options.h"
#include "net/tls_context.h"
#include "proxy/intake.h"

namespace ztape::proxy {

// What new connections use; a reload puts others in their place, on the loop's thread.
struct TlsContexts {
  std::shared_ptr<net::TlsContext> downstream;  // set where a route serves TLS
  std::shared_ptr<net::TlsContext> upstream;    // set where a destination is https
};

struct ProxyOptions {
  IntakeOptions intake;
  net::SocketOptions downstream_options;
  net::SocketOptions upstream_options;
  std::shared_ptr<const TlsContexts> tls;
  int64_t connect_timeout_ns = 10'000'000'000;
  std::size_t max_connections = 0;  // 0: no limit
};

}  // namespace ztape::proxy
