// The words of `ztape proxy`, read.
#pragma once

#include <cxxopts.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "cli/account.h"
#include "cli/proxy_stopper.h"
#include "cli/proxy_tls.h"
#include "proto/error.h"
#include "proxy/recorder.h"
#include "proxy/relayed_connection.h"

namespace ztape::cli {

struct ProxyCommand {
  proxy::ProxyOptions proxy;
  proxy::RecorderOptions recorder;
  std::shared_ptr<ProxyTls> tls;                 // null: plaintext on every side
  std::vector<net::SocketAddress> stats_listen;  // empty: no metrics
  ProxyStopper::Times times;
  std::optional<Account> account;  // --user
};

void add_proxy_options(cxxopts::Options& options);
// The n-th socket that a service manager passed on is where the n-th route listens. Errors: usage, where their numbers
// differ.
Result<void> use_passed_sockets(const std::vector<int>& sockets, ProxyCommand& command);
// Errors: usage, address.
Result<ProxyCommand> read_proxy_options(const cxxopts::ParseResult& words);

}  // namespace ztape::cli
