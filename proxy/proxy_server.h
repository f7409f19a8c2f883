// The proxy: its intake, the connections it took, one recorder for all. Lives on the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/loop.h"
#include "net/tcp.h"
#include "net/turn_watch.h"
#include "proto/error.h"
#include "proxy/intake.h"
#include "proxy/interval_sampler.h"
#include "proxy/loop_lag.h"
#include "proxy/proxy_options.h"
#include "proxy/recorder.h"
#include "proxy/relayed_connection.h"

namespace ztape::proxy {

struct ProxyCounts {
  uint64_t connections = 0;
  uint64_t upstream_failures = 0;
  uint64_t handshake_failures = 0;  // of wallets
  uint64_t turned_away = 0;         // above max_connections
  IntakeCounts intake;
  uint64_t bytes[2] = {0, 0};  // relayed, by direction
  uint64_t pauses = 0;         // a full queue stopped a reader
  uint64_t holds = 0;          // the recorder stopped all
};

class ProxyServer {
 public:
  // Binds the ports, so that local_texts() is known; connections are taken once record_to() was called and the loop
  // runs. Errors: address.
  static Result<std::unique_ptr<ProxyServer>> listen(net::Loop& loop, ProxyOptions options,
                                                     std::function<void(const std::string&)> on_problem);
  ~ProxyServer();
  ProxyServer(const ProxyServer&) = delete;
  ProxyServer& operator=(const ProxyServer&) = delete;

  // The recorder must be finished before the server is destroyed.
  void record_to(Recorder& recorder);
  // Where each route listens, in the order of the routes.
  [[nodiscard]] std::vector<std::string> local_texts() const { return intake_->local_texts(); }

  // Takes no more connections; `on_empty` is called, once, when the last of those there are is over, and not from
  // inside.
  void stop_taking(std::function<void()> on_empty);
  [[nodiscard]] std::size_t connection_count() const { return connections_.size(); }
  // Takes no more, closes every connection after what is queued for it, and records that. The loop's run() then ends
  // when all is delivered.
  void stop();

  [[nodiscard]] ProxyCounts counts() const;
  // After record_to().
  [[nodiscard]] const LoopLag& loop_lag() const { return *loop_lag_; }
  [[nodiscard]] bool takes_tproxy() const { return intake_->takes_tproxy(); }

 private:
  ProxyServer(net::Loop& loop, ProxyOptions options, std::function<void(const std::string&)> on_problem);
  void accept(Arrival arrival);
  void finished(ConnectionId id);
  void failed(Side side, const std::string& line);
  void hold_if_full();
  void on_room();
  void sample(ConnectionId id);
  void record_loop_lag(MonotonicTime now);
  void for_all(const std::function<Event()>& make_event);

  net::Loop& loop_;
  const ProxyOptions options_;
  std::function<void(const std::string&)> on_problem_;
  std::unique_ptr<Intake> intake_;
  std::unique_ptr<RelayedConnection::Surroundings> surroundings_;
  std::unique_ptr<net::Wakeup> room_wakeup_;
  std::unique_ptr<LoopLag> loop_lag_;
  std::unique_ptr<net::TurnWatch> turn_watch_;
  std::unique_ptr<IntervalSampler> sampler_;
  std::unordered_map<ConnectionId, std::unique_ptr<RelayedConnection>> connections_;
  ConnectionId last_id_ = 0;
  bool holding_ = false;
  std::function<void()> on_empty_;
  net::Timer patience_;
  ProxyCounts counts_;  // of connections that are over, but for `connections`
};

}  // namespace ztape::proxy
