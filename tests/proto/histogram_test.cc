#include "proto/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ztape {
namespace {

TEST(Histogram, ShowsAQuantileOnlyWithEnoughSamples) {
  Histogram histogram;
  EXPECT_EQ(histogram.quantile_ns(.5), std::nullopt);
  histogram.add(10);
  EXPECT_EQ(histogram.quantile_ns(.5), std::nullopt);
  histogram.add(20);
  EXPECT_EQ(histogram.quantile_ns(.5), 10);
  for (int i = 2; i < 9; ++i) histogram.add(30);
  EXPECT_EQ(histogram.quantile_ns(.9), std::nullopt);
  histogram.add(40);
  EXPECT_EQ(histogram.quantile_ns(.9), 30);
  for (int i = 10; i < 99; ++i) histogram.add(30);
  EXPECT_EQ(histogram.quantile_ns(.99), std::nullopt);
  histogram.add(50);
  EXPECT_EQ(histogram.quantile_ns(.99), 40);
  EXPECT_EQ(histogram.max_ns(), 50);
}

TEST(Histogram, QuantilesAreWithinTheStatedErrorOfTheSortedSamples) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::lognormal_distribution<double> draw(14, 3);
    std::vector<int64_t> samples;
    Histogram halves[2];
    for (int i = 0; i < 5000; ++i) {
      samples.push_back(static_cast<int64_t>(draw(random)));
      halves[i % 2].add(samples.back());
    }
    halves[0].merge(halves[1]);
    std::ranges::sort(samples);
    for (const double share : {.1, .5, .9, .99, .999}) {
      const auto exact = samples[static_cast<std::size_t>(std::ceil(5000 * share)) - 1];
      const auto told = halves[0].quantile_ns(share).value();
      EXPECT_GE(told, exact);
      EXPECT_LE(told, exact + exact / 128 + 1);
    }
    EXPECT_EQ(halves[0].max_ns(), samples.back());
    EXPECT_EQ(halves[0].count(), 5000u);
  }
}

TEST(Histogram, ItsBucketsHoldEverySampleOnceAndNoBucketIsWiderThanItsPrecision) {
  for (const int bits : {5, 7}) {
    Histogram histogram(bits);
    uint64_t added = 0;
    for (int64_t ns = 1; ns < INT64_MAX / 8; ns *= 3, ++added) histogram.add(ns, 2);
    uint64_t seen = 0;
    int64_t last = -1;
    histogram.for_each_bucket([&](int64_t top_ns, uint64_t count) {
      EXPECT_GT(top_ns, last);
      last = top_ns;
      seen += count;
    });
    EXPECT_EQ(seen, 2 * added);
    EXPECT_EQ(histogram.count(), 2 * added);
    Histogram one(bits);
    one.add(1'000'000);
    one.for_each_bucket([&](int64_t top_ns, uint64_t count) {
      EXPECT_EQ(count, 1u);
      EXPECT_GE(top_ns, 1'000'000);
      EXPECT_LE(top_ns, 1'000'000 + (1'000'000 >> bits));
    });
  }
}

TEST(Histogram, TakesAnyDuration) {
  Histogram histogram;
  for (const int64_t ns : {int64_t{-5}, int64_t{0}, int64_t{255}, int64_t{256}, INT64_MAX / 4}) histogram.add(ns);
  EXPECT_EQ(histogram.max_ns(), INT64_MAX / 4);
  EXPECT_EQ(histogram.quantile_ns(.5), 255);
}

}  // namespace
}  // namespace ztape
