#include "cli/proxy_stopper.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>

#include "cli/command.h"
#include "cli/service_manager.h"

namespace ztape::cli {
namespace {

// After a stop, what is queued for a peer that does not read is waited for so long.
constexpr int64_t kDeliveryNs = 1'000'000'000;

}  // namespace

ProxyStopper::ProxyStopper(net::Loop& loop, proxy::ProxyServer& server, Times times)
    : loop_(loop), server_(server), drain_ns_(times.drain_ns), timer_(loop), signals_(std::in_place, loop, [this](int) {
        on_signal();
      }) {
  if (times.duration_ns > 0) timer_.start(times.duration_ns, [this] { begin(); });
}

void ProxyStopper::leave_signals() {
  signals_.reset();
  loop_.poll();
}

void ProxyStopper::on_signal() {
  switch (state_) {
    case State::running: return begin();
    case State::draining: return stop();
    case State::stopping:
      std::fprintf(stderr, "ztape proxy: stopped at once; what was not written yet is lost\n");
      _exit(kIncomplete);
  }
}

void ProxyStopper::begin() {
  if (state_ != State::running) return;
  tell_service_manager("STOPPING=1");
  if (drain_ns_ == 0 || server_.connection_count() == 0) return stop();
  state_ = State::draining;
  server_.stop_taking([this] { stop(); });
  spdlog::info("takes no more connections; waits up to {} s for {} to end", drain_ns_ / 1'000'000'000,
               server_.connection_count());
  timer_.start(drain_ns_, [this] { stop(); });
}

void ProxyStopper::stop() {
  if (state_ == State::stopping) return;
  state_ = State::stopping;
  if (before_stop_) before_stop_();
  server_.stop();
  timer_.start(kDeliveryNs, [this] { loop_.stop(); });
  timer_.let_loop_end();
}

}  // namespace ztape::cli
