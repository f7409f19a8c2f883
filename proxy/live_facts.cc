#include "proxy/live_facts.h"

#include "net/loop.h"

namespace ztape::proxy {

LiveFacts look(const ProxyServer& server, const Recorder& recorder) {
  const auto now = net::monotonic_now();
  const auto& lag = server.loop_lag();
  return {.time = now,
          .uptime_ns = now - recorder.opened(),
          .open_connections = server.connection_count(),
          .counts = server.counts(),
          .recorder = recorder.status(),
          .loop_turns = lag.turns(),
          .loop_lag_max_ns = lag.max_ns(),
          .loop_lag_now_ns = lag.recent_max_ns(now)};
}

}  // namespace ztape::proxy
