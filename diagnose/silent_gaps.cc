#include "diagnose/silent_gaps.h"

#include <optional>

#include "proto/method_table.h"

namespace ztape::diagnose {
namespace {

bool is_long_lived(const http2::Call& call) {
  const auto* method = find_method(call.path);
  return method && method->long_lived;
}

// The youngest call that was under way during the whole gap.
std::optional<std::size_t> call_under_way(const http2::RecordedConnection& connection, int64_t from_ns, int64_t to_ns) {
  std::optional<std::size_t> youngest;
  for (std::size_t i = 0; i < connection.calls.size(); ++i) {
    const auto& call = connection.calls[i];
    if (call.start_ns < 0 || call.start_ns > from_ns || is_long_lived(call)) continue;
    if (call.end_ns >= 0 && call.end_ns < to_ns) continue;
    if (!youngest || call.start_ns >= connection.calls[*youngest].start_ns) youngest = i;
  }
  return youngest;
}

}  // namespace

std::vector<SilentGap> silent_gaps(const http2::RecordedConnection& connection) {
  std::vector<SilentGap> gaps;
  for (std::size_t i = 1; i < connection.reads.size(); ++i) {
    const int64_t from_ns = connection.reads[i - 1].time_ns;
    const int64_t to_ns = connection.reads[i].time_ns;
    if (to_ns - from_ns < kShortestHoldNs || to_ns - from_ns > kLongestHoldNs) continue;
    if (const auto call = call_under_way(connection, from_ns, to_ns)) gaps.push_back({from_ns, to_ns, *call});
  }
  return gaps;
}

int64_t total_ns(const std::vector<SilentGap>& gaps) {
  int64_t total = 0;
  for (const auto& gap : gaps) total += gap.to_ns - gap.from_ns;
  return total;
}

}  // namespace ztape::diagnose
