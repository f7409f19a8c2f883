// The silence inside calls that is as long as a delayed-ACK timer: what Nagle's algorithm costs a recorded session.
//
// A gap is the time between two reads of the recorder, in whatever direction, in which nothing crossed although a call
// was under way. Without packets it is only *consistent with* a hold by Nagle and the delayed ACK; a server that works
// for 40 ms looks the same.
#pragma once

#include <cstdint>
#include <vector>

#include "http2/recorded_connection.h"

namespace ztape::diagnose {

// The delayed-ACK timer is 40 ms plus at most a scheduler tick and the way (measured: 44 ms where HZ is 250).
inline constexpr int64_t kShortestHoldNs = 35'000'000;
inline constexpr int64_t kLongestHoldNs = 60'000'000;

struct SilentGap {
  int64_t from_ns = 0;
  int64_t to_ns = 0;
  std::size_t call = 0;  // of RecordedConnection::calls: the youngest call under way; long-lived streams do not count
};

std::vector<SilentGap> silent_gaps(const http2::RecordedConnection& connection);

// Gaps do not overlap, so the sum is also the length of their union.
int64_t total_ns(const std::vector<SilentGap>& gaps);

}  // namespace ztape::diagnose
