#include "proxy/interval_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "net/turn_watch.h"

namespace ztape::proxy {
namespace {

constexpr int64_t kMs = 1'000'000;

class IntervalSamplerTest : public testing::Test {
 protected:
  // Runs the loop until `done`; whatever keeps it alive is ours.
  void run_until(std::function<bool()> done) {
    done_ = std::move(done);
    keep_alive_.start(60'000 * kMs, [this] { loop_.stop(); });  // patience
    loop_.run();
    keep_alive_.cancel();
  }
  void look() {
    if (done_ && done_()) loop_.stop();
  }

  net::Loop loop_;
  net::Timer keep_alive_{loop_};
  std::vector<ConnectionId> samples_;
  int intervals_ = 0;
  std::function<bool()> done_;
  std::function<void()> on_sample_ = [] {};
  IntervalSampler sampler_{loop_,
                           {.sample =
                                [this](ConnectionId id) {
                                  samples_.push_back(id);
                                  on_sample_();
                                  look();
                                },
                            .on_interval =
                                [this](MonotonicTime due, MonotonicTime now) {
                                  ++intervals_;
                                  EXPECT_GE(now.ns, due.ns - 2 * kMs);
                                  look();
                                }},
                           5 * kMs};
};

TEST_F(IntervalSamplerTest, WhatMovedIsSampledOnceAndWhatDidNotIsNot) {
  sampler_.moved(7);
  sampler_.moved(3);
  run_until([&] { return samples_.size() == 2; });
  std::ranges::sort(samples_);
  EXPECT_EQ(samples_, (std::vector<ConnectionId>{3, 7}));
  EXPECT_EQ(intervals_, 1);
}

TEST_F(IntervalSamplerTest, WhileNothingMovesThereIsNoTimer) {
  sampler_.moved(1);
  run_until([&] { return samples_.size() == 1; });
  int turns = 0;
  net::TurnWatch watch(loop_, [&](MonotonicTime, MonotonicTime) { ++turns; });
  net::Timer wait(loop_);
  wait.start(50 * kMs, [&] { loop_.stop(); });  // ten intervals
  loop_.run();
  EXPECT_EQ(turns, 1);  // of this timer
  EXPECT_EQ(intervals_, 1);
}

TEST_F(IntervalSamplerTest, AConnectionThatMovesOnIsSampledAgainInTheNextInterval) {
  sampler_.moved(1);
  on_sample_ = [&] {
    if (samples_.size() < 3) sampler_.moved(1);
  };
  run_until([&] { return samples_.size() == 3; });
  EXPECT_EQ(intervals_, 3);
}

TEST_F(IntervalSamplerTest, ThousandsAreSampledAFewATurn) {
  constexpr std::size_t kConnections = 1000;
  std::size_t in_turn = 0, most = 0;
  on_sample_ = [&] { most = std::max(most, ++in_turn); };
  net::TurnWatch watch(loop_, [&](MonotonicTime, MonotonicTime) { in_turn = 0; });
  for (ConnectionId id = 1; id <= kConnections; ++id) sampler_.moved(id);
  run_until([&] { return samples_.size() == kConnections; });
  EXPECT_EQ(std::set<ConnectionId>(samples_.begin(), samples_.end()).size(), kConnections);
  EXPECT_EQ(most, kSamplesATurn);
  EXPECT_EQ(intervals_, 1);
}

}  // namespace
}  // namespace ztape::proxy
