// How `ztape proxy` ends: at a signal or after its time, at once or when its connections are over.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "net/loop.h"
#include "proxy/proxy_server.h"

namespace ztape::cli {

// The first SIGINT or SIGTERM, or the end of the duration, stops the server; with a drain time it is only kept from
// taking more connections, until those it has are over, that time is up, or another signal comes. A signal after the
// stop leaves the process at once, with what is not written yet lost.
class ProxyStopper {
 public:
  struct Times {
    int64_t duration_ns = 0;  // 0: until a signal
    int64_t drain_ns = 0;     // 0: no draining
  };
  ProxyStopper(net::Loop& loop, proxy::ProxyServer& server, Times times);

  // Called once, when the server is about to stop.
  void before_stop(std::function<void()> callback) { before_stop_ = std::move(callback); }
  // From now on a signal has its usual effect: the disk may keep us from ending.
  void leave_signals();

 private:
  void on_signal();
  void begin();
  void stop();

  enum class State { running, draining, stopping };
  net::Loop& loop_;
  proxy::ProxyServer& server_;
  const int64_t drain_ns_;
  State state_ = State::running;
  std::function<void()> before_stop_;
  net::Timer timer_;
  std::optional<net::StopSignals> signals_;
};

}  // namespace ztape::cli
