#include "proxy/loop_lag.h"

#include <gtest/gtest.h>

#include "proto/capture.pb.h"

namespace ztape::proxy {
namespace {

constexpr MonotonicTime kOpened{5'000'000'000};

MonotonicTime at_ms(int64_t ms) {
  return {kOpened.ns + ms * 1'000'000};
}

TEST(LoopLag, ABlockedLoopIsInTheRecordOfItsInterval) {
  LoopLag lag(kOpened);
  for (int i = 0; i < 100; ++i) lag.turn(at_ms(i), {at_ms(i).ns + 20'000});
  lag.turn(at_ms(200), at_ms(237));  // blocked
  capture::LoopLag record;
  ASSERT_TRUE(lag.end_interval(at_ms(1000), record));
  EXPECT_EQ(record.time_ns(), 1'000'000'000);
  EXPECT_EQ(record.interval_ns(), 1'000'000'000);
  EXPECT_EQ(record.turns(), 101u);
  EXPECT_EQ(record.max_ns(), 37'000'000);
  EXPECT_EQ(record.timer_late_ns(), 0);
  ASSERT_EQ(record.bucket_top_ns_size(), 2);
  ASSERT_EQ(record.bucket_turns_size(), 2);
  EXPECT_EQ(record.bucket_turns(0), 100u);
  EXPECT_GE(record.bucket_top_ns(0), 20'000);
  EXPECT_LE(record.bucket_top_ns(0), 20'000 + 20'000 / 16);
  EXPECT_EQ(record.bucket_turns(1), 1u);
  EXPECT_EQ(record.bucket_top_ns(1), 37'000'000);
  EXPECT_EQ(lag.recent_max_ns(at_ms(1500)), 37'000'000);
  EXPECT_EQ(lag.recent_max_ns(at_ms(9000)), 0);
}

TEST(LoopLag, AnIntervalHasItsOwnTurnsOnlyAndTheTotalHasAll) {
  LoopLag lag(kOpened);
  lag.turn(at_ms(1), at_ms(4));
  capture::LoopLag first;
  ASSERT_TRUE(lag.end_interval(at_ms(1000), first));
  lag.turn(at_ms(2500), at_ms(2501));
  capture::LoopLag second;
  ASSERT_TRUE(lag.end_interval(at_ms(3000), second));
  EXPECT_EQ(second.turns(), 1u);
  EXPECT_EQ(second.max_ns(), 1'000'000);
  EXPECT_EQ(second.interval_ns(), 2'000'000'000);
  EXPECT_EQ(lag.turns().count(), 2u);
  EXPECT_EQ(lag.max_ns(), 3'000'000);
  EXPECT_EQ(lag.recent_max_ns(at_ms(3500)), 1'000'000);
  capture::LoopLag none;
  EXPECT_FALSE(lag.end_interval(at_ms(4000), none));
}

TEST(LoopLag, ATimerThatCameLateSaysThatTheProcessWasNotRun) {
  LoopLag lag(kOpened);
  lag.turn(at_ms(1), at_ms(2));
  lag.timer(at_ms(1000), at_ms(1001));  // its resolution
  lag.timer(at_ms(2000), at_ms(2600));
  capture::LoopLag record;
  ASSERT_TRUE(lag.end_interval(at_ms(2600), record));
  EXPECT_EQ(record.timer_late_ns(), 600'000'000);
  EXPECT_EQ(record.max_ns(), 1'000'000);
  EXPECT_EQ(lag.max_ns(), 600'000'000);
  lag.turn(at_ms(2700), at_ms(2701));
  capture::LoopLag next;
  ASSERT_TRUE(lag.end_interval(at_ms(3600), next));
  EXPECT_EQ(next.timer_late_ns(), 0);
}

}  // namespace
}  // namespace ztape::proxy
