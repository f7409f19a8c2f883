#include "proxy/interval_sampler.h"

#include <algorithm>
#include <utility>

namespace ztape::proxy {
namespace {

constexpr int64_t kNextTurnNs = 1'000'000;  // a timer of 0 might fire in the same turn

}  // namespace

IntervalSampler::IntervalSampler(net::Loop& loop, Callbacks callbacks, int64_t interval_ns)
    : callbacks_(std::move(callbacks)), interval_ns_(interval_ns), timer_(loop) {
  timer_.let_loop_end();
}

void IntervalSampler::moved(ConnectionId connection) {
  moved_.push_back(connection);
  if (!timer_.active()) wait_for_interval({net::monotonic_now().ns + interval_ns_});
}

void IntervalSampler::wait_for_interval(MonotonicTime due) {
  due_ = due;
  timer_.start(std::max<int64_t>(0, due - net::monotonic_now()), [this] { end_interval(); });
}

void IntervalSampler::end_interval() {
  const auto now = net::monotonic_now();
  callbacks_.on_interval(due_, now);
  // Where the loop was stopped for long, intervals are left out and not made up for.
  due_.ns = std::max(due_.ns, now.ns - interval_ns_);
  waiting_ = std::exchange(moved_, {});
  sample_some();
}

void IntervalSampler::sample_some() {
  for (std::size_t i = 0; i < kSamplesATurn && !waiting_.empty(); ++i) {
    const auto connection = waiting_.back();
    waiting_.pop_back();
    callbacks_.sample(connection);
  }
  if (!waiting_.empty()) return timer_.start(kNextTurnNs, [this] { sample_some(); });
  if (!moved_.empty()) wait_for_interval({due_.ns + interval_ns_});
}

}  // namespace ztape::proxy
