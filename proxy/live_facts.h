// What there is to tell of a proxy while it runs, gathered at one moment; for the live table and for the metrics.
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/histogram.h"
#include "proto/words.h"
#include "proxy/proxy_server.h"
#include "proxy/recorder.h"

namespace ztape::proxy {

struct LiveFacts {
  MonotonicTime time;
  int64_t uptime_ns = 0;
  std::size_t open_connections = 0;
  ProxyCounts counts;
  RecorderStatus recorder;
  Histogram loop_turns;  // since the start
  int64_t loop_lag_max_ns = 0;
  int64_t loop_lag_now_ns = 0;  // LoopLag::recent_max_ns
};

// On the loop's thread, after ProxyServer::record_to().
LiveFacts look(const ProxyServer& server, const Recorder& recorder);

}  // namespace ztape::proxy
