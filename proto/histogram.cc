#include "proto/histogram.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace ztape {

// Values below 2^(precision_bits + 1) have a bucket each; above, an octave has 2^precision_bits buckets.
std::size_t Histogram::bucket_of(uint64_t value) const {
  const uint64_t linear = uint64_t{2} << precision_bits_;
  if (value < linear) return value;
  const int shift = std::bit_width(value) - (precision_bits_ + 1);
  // value >> shift is in [linear / 2, linear).
  return linear + static_cast<std::size_t>(shift - 1) * (linear / 2) + ((value >> shift) - linear / 2);
}

int64_t Histogram::top_of(std::size_t bucket) const {
  const uint64_t linear = uint64_t{2} << precision_bits_;
  if (bucket < linear) return static_cast<int64_t>(bucket);
  const auto octave = (bucket - linear) / (linear / 2);
  const auto within = (bucket - linear) % (linear / 2) + linear / 2;
  return static_cast<int64_t>(((within + 1) << (octave + 1)) - 1);
}

void Histogram::add(int64_t ns, uint64_t times) {
  if (times == 0) return;
  ns = std::max<int64_t>(0, ns);
  const auto bucket = bucket_of(static_cast<uint64_t>(ns));
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  buckets_[bucket] += times;
  count_ += times;
  sum_ns_ = static_cast<int64_t>(static_cast<uint64_t>(sum_ns_) + static_cast<uint64_t>(ns) * times);
  max_ns_ = std::max(max_ns_, ns);
}

void Histogram::merge(const Histogram& other) {
  assert(precision_bits_ == other.precision_bits_);
  if (other.buckets_.size() > buckets_.size()) buckets_.resize(other.buckets_.size());
  for (std::size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ns_ += other.sum_ns_;
  max_ns_ = std::max(max_ns_, other.max_ns_);
}

std::optional<int64_t> Histogram::quantile_ns(double share) const {
  constexpr double kRounding = 1e-9;
  if (count_ == 0 || static_cast<double>(count_) * (1 - share) < 1 - kRounding) return std::nullopt;
  const auto rank = std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(static_cast<double>(count_) * share)));
  uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= rank) return std::min(max_ns_, top_of(i));
  }
  return max_ns_;
}

void Histogram::for_each_bucket(const std::function<void(int64_t, uint64_t)>& visit) const {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] > 0) visit(top_of(i), buckets_[i]);
  }
}

}  // namespace ztape
