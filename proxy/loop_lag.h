// How late the loop looks at what has arrived: counts the lengths of its turns, an interval at a time. Sans-I/O.
#pragma once

#include <cstdint>
#include <optional>

#include "proto/histogram.h"
#include "proto/words.h"

namespace ztape::capture {
class LoopLag;
}

namespace ztape::proxy {

// A timer of a loop counts whole milliseconds: below this it is not late.
inline constexpr int64_t kTimerResolutionNs = 2'000'000;

class LoopLag {
 public:
  // `opened` is the zero of the record's times and the beginning of the first interval.
  explicit LoopLag(MonotonicTime opened) : opened_(opened), interval_began_(opened) {}

  // A turn of the loop, from its first event to its next wait.
  void turn(MonotonicTime began, MonotonicTime ended);
  // A timer that was due then was called now.
  void timer(MonotonicTime due, MonotonicTime now);

  // Ends the interval. False, with `record` as it was: no turn in it.
  bool end_interval(MonotonicTime now, capture::LoopLag& record);

  // Of all intervals, the one under way too.
  [[nodiscard]] const Histogram& turns() const { return turns_; }
  [[nodiscard]] int64_t max_ns() const;  // turns and timers
  // Of the last interval that ended; 0 where that is over for long: nothing moves. What who looks on calls now.
  [[nodiscard]] int64_t recent_max_ns(MonotonicTime now) const;

 private:
  MonotonicTime opened_;
  MonotonicTime interval_began_;
  Histogram of_interval_{kPrecisionBits};
  Histogram turns_{kPrecisionBits};
  int64_t timer_late_ns_ = 0;  // the latest of the interval
  int64_t latest_timer_ns_ = 0;
  int64_t last_max_ns_ = 0;

  static constexpr int kPrecisionBits = 4;
};

}  // namespace ztape::proxy
