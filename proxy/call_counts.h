// How often which call ended how, how long calls took, and which are under way. Bounded, whatever the peers invent.
// One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http2/call.h"
#include "http2/call_builder.h"
#include "proto/histogram.h"

namespace ztape::proxy {

// A peer may invent methods without end: so many have a name of their own, the others this one together. So have those
// whose path is over kLongestPath bytes, begins without a slash or has other characters than printable ASCII.
inline constexpr std::size_t kMostMethods = 1000;
inline constexpr std::size_t kLongestPath = 200;
inline constexpr std::size_t kMostOutcomes = 4000;  // methods times ways to end
inline constexpr std::string_view kOtherMethods = "(others)";

// The upper bounds of the duration buckets; the last bucket has none. Two of them stand around the delayed-ACK timers
// of 40 ms, so that their floor is a bucket of its own.
inline constexpr std::array<int64_t, 19> kDurationBoundsNs{
    100'000,       250'000,       500'000,        1'000'000,      2'500'000,     5'000'000,   10'000'000,
    25'000'000,    35'000'000,    50'000'000,     100'000'000,    250'000'000,   500'000'000, 1'000'000'000,
    2'500'000'000, 5'000'000'000, 10'000'000'000, 30'000'000'000, 60'000'000'000};

// One way for the calls of one method to end.
struct Outcome {
  uint64_t calls = 0;
  // From the last byte of the request's headers to the end; calls without both are left out.
  std::array<uint64_t, kDurationBoundsNs.size() + 1> durations{};  // exact, by bucket, not cumulative
  int64_t duration_sum_ns = 0;
  [[nodiscard]] uint64_t timed_calls() const;
};

// One method in a few numbers.
struct MethodFigures {
  std::string path{};  // "": could not be read
  uint64_t calls = 0;
  uint64_t in_flight = 0;
  uint64_t errors = 0;     // ended by the server in another way than well
  uint64_t cancelled = 0;  // by the client: reset, or its connection ended
  uint64_t unseen = 0;     // their end was not seen (Call::end_unseen)
  std::optional<int64_t> p50_ns{};
  std::optional<int64_t> p95_ns{};
  int64_t max_ns = 0;
};

class CallCounts final : public http2::CallWatcher {
 public:
  struct Key {
    std::string path;
    std::optional<int> grpc_status;
    http2::EndedBy ended_by = http2::EndedBy::still_open;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  void on_begun(const http2::Call& call) override;
  void on_over(const http2::Call& call) override;
  // When nothing of it can follow any more.
  void add(const http2::Call& call);

  [[nodiscard]] const std::map<Key, Outcome>& rows() const { return rows_; }
  [[nodiscard]] uint64_t total() const { return total_; }
  [[nodiscard]] std::vector<MethodFigures> methods() const;  // by path

 private:
  struct Method {
    MethodFigures figures;  // but for the quantiles
    Histogram durations{5};
  };
  Method& method(const std::string& path);

  std::map<Key, Outcome> rows_;
  std::map<std::string, Method, std::less<>> methods_;
  uint64_t total_ = 0;
};

}  // namespace ztape::proxy
