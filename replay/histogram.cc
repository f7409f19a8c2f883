#include "replay/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ztape::replay {
namespace {

constexpr int kPrecisionBits = 7;
constexpr uint64_t kLinear = 1u << (kPrecisionBits + 1);  // values below it have a bucket each

std::size_t bucket_of(uint64_t value) {
  if (value < kLinear) return value;
  const int shift = std::bit_width(value) - (kPrecisionBits + 1);
  // value >> shift is in [128, 256): 128 buckets an octave.
  return kLinear + static_cast<std::size_t>(shift - 1) * (kLinear / 2) + ((value >> shift) - kLinear / 2);
}

// The largest value of a bucket.
uint64_t top_of(std::size_t bucket) {
  if (bucket < kLinear) return bucket;
  const auto octave = (bucket - kLinear) / (kLinear / 2);
  const auto within = (bucket - kLinear) % (kLinear / 2) + kLinear / 2;
  return ((within + 1) << (octave + 1)) - 1;
}

}  // namespace

void Histogram::add(int64_t ns) {
  ns = std::max<int64_t>(0, ns);
  const auto bucket = bucket_of(static_cast<uint64_t>(ns));
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  ++buckets_[bucket];
  ++count_;
  sum_ns_ += ns;
  max_ns_ = std::max(max_ns_, ns);
}

void Histogram::merge(const Histogram& other) {
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
    if (seen >= rank) return std::min(max_ns_, static_cast<int64_t>(top_of(i)));
  }
  return max_ns_;
}

}  // namespace ztape::replay
