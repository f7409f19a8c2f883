// Counts durations in buckets that are at most 1/128 of their value wide. Memory does not grow with the number of
// samples; two histograms add up.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace ztape::replay {

class Histogram {
 public:
  void add(int64_t ns);  // negative counts as 0
  void merge(const Histogram& other);

  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] int64_t max_ns() const { return max_ns_; }
  [[nodiscard]] int64_t sum_ns() const { return sum_ns_; }

  // The value that `share` (0..1) of the samples do not exceed, at most 1/128 above it and never above the maximum.
  // nullopt where the samples are too few for it: at least one sample must be expected beyond it (2 samples for the
  // median, 10 for the 90th percentile, 100 for the 99th).
  [[nodiscard]] std::optional<int64_t> quantile_ns(double share) const;

 private:
  std::vector<uint64_t> buckets_;
  uint64_t count_ = 0;
  int64_t max_ns_ = 0;
  int64_t sum_ns_ = 0;
};

}  // namespace ztape::replay
