// Decides when each connection is sampled: at most once an interval, only when it moved bytes since its last sample,
// and a few in one turn of the loop, so that thousands of connections do not hold up the traffic. While nothing moves
// there is no timer at all. Lives on the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "net/loop.h"
#include "proto/words.h"

namespace ztape::proxy {

inline constexpr int64_t kSampleIntervalNs = 1'000'000'000;
// A sample of both sockets and its records take some 3 us.
inline constexpr std::size_t kSamplesATurn = 64;

class IntervalSampler {
 public:
  struct Callbacks {
    std::function<void(ConnectionId)> sample;                               // it may be gone
    std::function<void(MonotonicTime due, MonotonicTime now)> on_interval;  // after which the samples come
  };
  // Its timer does not keep the loop from ending.
  IntervalSampler(net::Loop& loop, Callbacks callbacks, int64_t interval_ns = kSampleIntervalNs);

  // For the first bytes of a connection after its last sample, or after its opening.
  void moved(ConnectionId connection);

 private:
  void wait_for_interval(MonotonicTime due);
  void end_interval();
  void sample_some();

  Callbacks callbacks_;
  const int64_t interval_ns_;
  net::Timer timer_;
  MonotonicTime due_;
  std::vector<ConnectionId> moved_;    // in the interval under way
  std::vector<ConnectionId> waiting_;  // for their samples, the last one first
};

}  // namespace ztape::proxy
