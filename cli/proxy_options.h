// The words of `ztape proxy`, read.
#pragma once

#include <cxxopts.hpp>
#include <memory>

#include "cli/proxy_tls.h"
#include "proto/error.h"
#include "proxy/recorder.h"
#include "proxy/relayed_connection.h"

namespace ztape::cli {

struct ProxyCommand {
  proxy::ProxyOptions proxy;
  proxy::RecorderOptions recorder;
  std::shared_ptr<ProxyTls> tls;  // null: plaintext on every side
  int64_t duration_ns = 0;        // 0: until stopped
};

void add_proxy_options(cxxopts::Options& options);
// Errors: usage, address.
Result<ProxyCommand> read_proxy_options(const cxxopts::ParseResult& words);

}  // namespace ztape::cli
