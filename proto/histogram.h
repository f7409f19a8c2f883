// Counts durations in buckets that are a small share of their value wide. Memory does not grow with the number of
// samples; two histograms of one precision add up.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace ztape {

class Histogram {
 public:
  // Buckets are at most 1/2^precision_bits of their value wide. 7 takes some 30 KiB where samples reach 100 s, 5 a
  // quarter of that. 1 to 16.
  explicit Histogram(int precision_bits = 7) : precision_bits_(precision_bits) {}

  void add(int64_t ns, uint64_t times = 1);  // negative counts as 0
  void merge(const Histogram& other);        // of the same precision

  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] int64_t max_ns() const { return max_ns_; }
  [[nodiscard]] int64_t sum_ns() const { return sum_ns_; }

  // The value that `share` (0..1) of the samples do not exceed, at most a bucket's width above it and never above the
  // maximum. nullopt where the samples are too few for it: at least one sample must be expected beyond it (2 samples
  // for the median, 10 for the 90th percentile, 100 for the 99th).
  [[nodiscard]] std::optional<int64_t> quantile_ns(double share) const;

  // The buckets that hold any, the lowest first: the largest value that a bucket takes, and how many it holds.
  void for_each_bucket(const std::function<void(int64_t top_ns, uint64_t count)>& visit) const;

 private:
  [[nodiscard]] std::size_t bucket_of(uint64_t value) const;
  [[nodiscard]] int64_t top_of(std::size_t bucket) const;

  int precision_bits_;
  std::vector<uint64_t> buckets_;
  uint64_t count_ = 0;
  int64_t max_ns_ = 0;
  int64_t sum_ns_ = 0;
};

}  // namespace ztape
