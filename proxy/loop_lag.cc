#include "proxy/loop_lag.h"

#include <algorithm>
#include <utility>

#include "proto/capture.pb.h"

namespace ztape::proxy {
namespace {

constexpr int64_t kRecentNs = 3'000'000'000;

}  // namespace

void LoopLag::turn(MonotonicTime began, MonotonicTime ended) {
  of_interval_.add(ended - began);
  turns_.add(ended - began);
}

void LoopLag::timer(MonotonicTime due, MonotonicTime now) {
  if (now - due < kTimerResolutionNs) return;
  timer_late_ns_ = std::max(timer_late_ns_, now - due);
  latest_timer_ns_ = std::max(latest_timer_ns_, now - due);
}

bool LoopLag::end_interval(MonotonicTime now, capture::LoopLag& record) {
  if (of_interval_.count() == 0) return false;
  const auto turns = std::exchange(of_interval_, Histogram(kPrecisionBits));
  const auto late_ns = std::exchange(timer_late_ns_, 0);
  record.set_time_ns(now - opened_);
  record.set_interval_ns(now - std::exchange(interval_began_, now));
  record.set_turns(turns.count());
  record.set_max_ns(turns.max_ns());
  turns.for_each_bucket([&](int64_t top_ns, uint64_t count) {
    record.add_bucket_top_ns(std::min(top_ns, turns.max_ns()));
    record.add_bucket_turns(count);
  });
  record.set_timer_late_ns(late_ns);
  last_max_ns_ = std::max(turns.max_ns(), late_ns);
  return true;
}

int64_t LoopLag::recent_max_ns(MonotonicTime now) const {
  return now - interval_began_ < kRecentNs ? last_max_ns_ : 0;
}

int64_t LoopLag::max_ns() const {
  return std::max(turns_.max_ns(), latest_timer_ns_);
}

}  // namespace ztape::proxy
