#include "net/loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "net/turn_watch.h"

namespace ztape::net {
namespace {

TEST(Timer, FiresOnceAndNotBeforeItsTime) {
  Loop loop;
  Timer timer(loop);
  int fired = 0;
  const auto begin = monotonic_now();
  MonotonicTime end;
  timer.start(3'000'000, [&] {
    ++fired;
    end = monotonic_now();
  });
  EXPECT_TRUE(timer.active());
  loop.run();
  EXPECT_EQ(fired, 1);
  EXPECT_FALSE(timer.active());
  EXPECT_GE(end - begin, 2'000'000);  // uv counts whole milliseconds
}

TEST(Timer, AnAbsoluteDeadlineIsNeverMetEarly) {
  Loop loop;
  Timer timer(loop);
  for (const int64_t ahead_ns : {-5'000'000, 0, 300'000, 1'500'000, 4'700'000}) {
    const MonotonicTime due{monotonic_now().ns + ahead_ns};
    MonotonicTime fired;
    timer.start_at(due, [&] { fired = monotonic_now(); });
    loop.run();
    EXPECT_GE(fired.ns, due.ns);
  }
}

TEST(Timer, MayStartItselfAgainOrBeDestroyedInItsCallback) {
  Loop loop;
  auto timer = std::make_unique<Timer>(loop);
  int fired = 0;
  timer->start(0, [&] {
    ++fired;
    timer->start(0, [&] {
      ++fired;
      timer.reset();
    });
  });
  loop.run();
  EXPECT_EQ(fired, 2);
}

TEST(Timer, ACancelledOneDoesNotFire) {
  Loop loop;
  Timer timer(loop);
  timer.start(0, [] { FAIL(); });
  timer.cancel();
  timer.start_at(monotonic_now(), [] { FAIL(); });
  timer.cancel();
  loop.run();
}

TEST(Timer, OneThatLetsTheLoopEndDoesNotKeepItRunning) {
  Loop loop;
  Timer timer(loop);
  timer.start(3600'000'000'000, [] { FAIL(); });
  timer.let_loop_end();
  loop.run();
  EXPECT_TRUE(timer.active());
}

TEST(Wakeup, WakesTheLoopFromAnotherThread) {
  Loop loop;
  int woken = 0;
  std::unique_ptr<Wakeup> wakeup;
  wakeup = std::make_unique<Wakeup>(loop, [&] {
    ++woken;
    wakeup.reset();
  });
  std::thread other([&, raw = wakeup.get()] { raw->wake(); });
  other.join();
  loop.run();
  EXPECT_EQ(woken, 1);
}

TEST(StopSignals, CountsInterruptAndTerminate) {
  Loop loop;
  std::vector<int> counts;
  Timer keeps_the_loop(loop);
  keeps_the_loop.start(60'000'000'000, [] { FAIL() << "no signal came"; });
  StopSignals signals(loop, [&](int count) {
    counts.push_back(count);
    if (count == 1) kill(getpid(), SIGTERM);
    if (count == 2) keeps_the_loop.cancel();
  });
  kill(getpid(), SIGINT);
  loop.run();
  EXPECT_EQ(counts, (std::vector<int>{1, 2}));
}

TEST(TurnWatch, ATurnIsAsLongAsWhatItsCallbacksDo) {
  Loop loop;
  std::vector<int64_t> turns_ns;
  TurnWatch watch(loop, [&](MonotonicTime began, MonotonicTime ended) { turns_ns.push_back(ended - began); });
  constexpr int64_t kBlockedNs = 5'000'000;
  int fired = 0;
  Timer timer(loop);
  Timer second(loop);
  const auto block = [&] {
    ++fired;
    const auto begin = monotonic_now();
    while (monotonic_now() - begin < kBlockedNs) continue;
  };
  timer.start(1'000'000, [&] {
    block();
    second.start(20'000'000, block);  // in a turn of its own
  });
  loop.run();
  EXPECT_EQ(fired, 2);
  ASSERT_EQ(turns_ns.size(), 2u);
  for (const auto turn_ns : turns_ns) EXPECT_GE(turn_ns, kBlockedNs);
}

TEST(TurnWatch, WhatOneCallbackHoldsUpIsSeenWhereTheNextOneWouldHaveReadIt) {
  Loop loop;
  std::vector<int64_t> turns_ns;
  auto watch = std::make_unique<TurnWatch>(
      loop, [&](MonotonicTime began, MonotonicTime ended) { turns_ns.push_back(ended - began); });
  Timer timer(loop);
  timer.start(0, [] {});
  loop.poll();
  loop.poll();  // nothing to do: no turn
  ASSERT_EQ(turns_ns.size(), 1u);
  watch.reset();
  timer.start(0, [] {});
  loop.run();
  EXPECT_EQ(turns_ns.size(), 1u);
}

}  // namespace
}  // namespace ztape::net
