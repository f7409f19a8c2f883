#include "replay/scheduler.h"

#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <random>

#include "tests/replay/recorded.h"

namespace ztape::replay {
namespace {

using test::connection_of;
using test::stream_call;
using test::unary_call;

std::string text(const std::optional<Action>& action) {
  if (!action) return "nothing";
  static constexpr const char* kNames[] = {"start", "message", "half_close", "cancel"};
  return std::string(kNames[static_cast<int>(action->kind)]) + " " + std::to_string(action->call) + " due " +
         std::to_string(action->due.ns);
}

void start_call(Scheduler& scheduler, uint32_t call, int64_t now, int64_t due) {
  const std::string suffix = " " + std::to_string(call) + " due " + std::to_string(due);
  EXPECT_EQ(text(scheduler.take_due({now})), "start" + suffix);
  EXPECT_EQ(text(scheduler.take_due({now})), "message" + suffix);
  EXPECT_EQ(text(scheduler.take_due({now})), "half_close" + suffix);
}

TEST(Scheduler, WaitsForTheAnswerThenThinks) {
  const auto connection = connection_of({unary_call(1, "GetBlock", 100, 200), unary_call(3, "GetBlock", 230, 300)});
  const auto session = make_session(connection, {});
  Scheduler scheduler(session, {});
  EXPECT_EQ(scheduler.next_due(), std::nullopt);
  scheduler.connected({1000});
  EXPECT_EQ(scheduler.next_due(), MonotonicTime{1100});
  EXPECT_EQ(text(scheduler.take_due({1099})), "nothing");
  start_call(scheduler, 0, 1100, 1100);
  EXPECT_EQ(scheduler.next_due(), std::nullopt);  // only the answer can bring the next step
  scheduler.response_headers(0, {5000});
  scheduler.response_message(0, {5000});
  EXPECT_EQ(scheduler.next_due(), std::nullopt);
  scheduler.ended(0, {6000});
  EXPECT_EQ(scheduler.next_due(), MonotonicTime{6030});
  start_call(scheduler, 1, 7000, 6030);  // served late: still due when it was
  EXPECT_FALSE(scheduler.done());
  scheduler.ended(1, {8000});
  EXPECT_TRUE(scheduler.done());
}

TEST(Scheduler, SpeedDividesThinkTimeAndNoneDropsIt) {
  const auto connection = connection_of({unary_call(1, "GetBlock", 100, 200)});
  const auto session = make_session(connection, {});
  Scheduler twice(session, {.speed = 2});
  twice.connected({1000});
  EXPECT_EQ(twice.next_due(), MonotonicTime{1050});
  Scheduler none(session, {.pace = Pace::none});
  none.connected({1000});
  EXPECT_EQ(none.next_due(), MonotonicTime{1000});
}

TEST(Scheduler, RecordedPaceKeepsAbsoluteTimesButNeverOvertakesAnAnswer) {
  const auto connection = connection_of({unary_call(1, "GetBlock", 100, 200), unary_call(3, "GetBlock", 230, 300)});
  const auto session = make_session(connection, {});
  Scheduler scheduler(session, {.pace = Pace::recorded});
  scheduler.connected({1000});
  start_call(scheduler, 0, 1100, 1100);
  Scheduler late = scheduler;
  scheduler.ended(0, {1110});
  EXPECT_EQ(scheduler.next_due(), MonotonicTime{1230});
  late.ended(0, {9000});
  EXPECT_EQ(late.next_due(), MonotonicTime{9000});
}

TEST(Scheduler, AMessageIsMetByTheFailureOfItsCall) {
  const auto connection =
      connection_of({stream_call(1, "GetBlockRange", 100, {200, 300, 400}, 500), unary_call(3, "GetBlock", 350, 600)});
  const auto session = make_session(connection, {});
  Scheduler scheduler(session, {.pace = Pace::none});
  scheduler.connected({0});
  start_call(scheduler, 0, 0, 0);
  scheduler.response_headers(0, {10});
  scheduler.response_message(0, {10});
  EXPECT_EQ(text(scheduler.take_due({10})), "nothing");
  scheduler.ended(0, {20});  // after one of the two messages it waits for
  start_call(scheduler, 1, 20, 20);
}

TEST(Scheduler, CallsThatAreLeftOutCountAsMetAtOnce) {
  const auto connection = connection_of({unary_call(1, "GetBlock", 100, 200), unary_call(3, "GetBlock", 230, 300)});
  const auto session = make_session(connection, {});
  Scheduler scheduler(session, {}, {true, false});
  scheduler.connected({1000});
  start_call(scheduler, 1, 1030, 1030);  // the think time alone, not the time of the call that was left out
  scheduler.ended(1, {2000});
  EXPECT_TRUE(scheduler.done());
}

TEST(Scheduler, CancelsAfterTheSameNumberOfMessages) {
  auto range = stream_call(1, "GetBlockRange", 100, {200, 300}, 350);
  range.ended_by = http2::EndedBy::client_reset;
  const auto connection = connection_of({range});
  const auto session = make_session(connection, {});
  Scheduler scheduler(session, {});
  scheduler.connected({0});
  start_call(scheduler, 0, 100, 100);
  scheduler.response_headers(0, {1000});
  scheduler.response_message(0, {1000});
  EXPECT_EQ(scheduler.next_due(), std::nullopt);
  scheduler.response_message(0, {2000});
  EXPECT_EQ(text(scheduler.take_due({2050})), "cancel 0 due 2050");
  scheduler.ended(0, {2050});
  EXPECT_TRUE(scheduler.done());
}

TEST(Scheduler, ADeadlineRunsFromTheStartOfItsCallWhateverTheSpeed) {
  auto mempool = stream_call(1, "GetMempoolStream", 100, {}, 1'000'000'100);
  mempool.ended_by = http2::EndedBy::client_reset;
  mempool.request_headers.push_back({"grpc-timeout", "1S"});
  const auto connection = connection_of({mempool});
  const auto session = make_session(connection, {});
  Scheduler scheduler(session, {.pace = Pace::none, .speed = 100});
  scheduler.connected({0});
  start_call(scheduler, 0, 500, 0);
  EXPECT_EQ(scheduler.next_due(), MonotonicTime{1'000'000'500});
  EXPECT_EQ(text(scheduler.take_due({1'000'000'500})), "cancel 0 due 1000000500");
}

TEST(Scheduler, TheCancelOfAMempoolStreamWaitsForItsOwnMessages) {
  auto mempool = stream_call(1, "GetMempoolStream", 100, {300}, 400);
  mempool.ended_by = http2::EndedBy::client_reset;
  const auto connection = connection_of({mempool, unary_call(3, "GetBlock", 310, 350)});
  const auto session = make_session(connection, {});
  Scheduler scheduler(session, {});
  scheduler.connected({0});
  start_call(scheduler, 0, 100, 100);
  start_call(scheduler, 1, 310, 310);  // does not wait for the mempool's message
  scheduler.ended(1, {500});
  EXPECT_EQ(scheduler.next_due(), std::nullopt);
  scheduler.response_headers(0, {600});
  scheduler.response_message(0, {600});
  EXPECT_EQ(text(scheduler.take_due({650})), "cancel 0 due 650");
}

// A server that answers in its own time, and sometimes less than was recorded.
class FakeServer {
 public:
  FakeServer(const Session& session, Pacing pacing, uint64_t seed, bool reliable)
      : session_(session),
        scheduler_(session, pacing),
        random_(seed),
        reliable_(reliable),
        calls_(session.calls.size()) {}

  // Plays the whole session; counts what was done.
  void play() {
    scheduler_.connected({now_});
    for (int turns = 0; !scheduler_.done(); ++turns) {
      ASSERT_LT(turns, 1'000'000) << "the session hangs";
      while (const auto action = scheduler_.take_due({now_})) {
        take(*action);
        if (testing::Test::HasFatalFailure()) return;
      }
      if (!step()) return;
    }
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      EXPECT_EQ(calls_[i].started, !session_.calls[i].skipped()) << "call " << i;
    }
  }

 private:
  struct State {
    bool started = false;
    bool half_closed = false;
    bool over = false;
    uint32_t sent = 0;
    bool headers = false;
    uint32_t messages = 0;
  };

  void take(const Action& action) {
    auto& state = calls_[action.call];
    const auto& planned = session_.calls[action.call];
    EXPECT_LE(action.due.ns, now_);
    ASSERT_FALSE(state.over) << "a step of a call that is over";
    check_order(action);
    switch (action.kind) {
      case StepKind::start:
        ASSERT_FALSE(state.started);
        state.started = true;
        answer_later(action.call);
        break;
      case StepKind::message:
        ASSERT_TRUE(state.started);
        ASSERT_FALSE(state.half_closed);
        ASSERT_EQ(action.message, state.sent++);
        break;
      case StepKind::half_close:
        ASSERT_EQ(state.sent, planned.recorded->requests.size());
        state.half_closed = true;
        break;
      case StepKind::cancel:
        ASSERT_TRUE(state.started);
        state.over = true;
        scheduler_.ended(action.call, {now_});
        break;
    }
  }

  // What the recording says had reached the wallet before this step has come, or its call is over or was never sent.
  void check_order(const Action& action) {
    const auto& planned = session_.calls[action.call];
    if (action.kind == StepKind::cancel && planned.deadline_ns) return;
    const auto& call = *planned.recorded;
    int64_t time_ns = action.kind == StepKind::start        ? call.start_ns
                      : action.kind == StepKind::message    ? call.requests[action.message].last_byte_ns
                      : action.kind == StepKind::half_close ? call.request_end_ns
                                                            : call.end_ns;
    time_ns = std::max(time_ns, call.start_ns);
    for (std::size_t i = 0; i < session_.calls.size(); ++i) {
      const auto& other = session_.calls[i];
      if (other.skipped() || calls_[i].over) continue;
      if (other.long_lived && !(action.kind == StepKind::cancel && i == action.call)) continue;
      if (other.recorded->end_ns >= 0 && other.recorded->end_ns < time_ns && !other.cut()) {
        ADD_FAILURE() << "call " << i << " had ended before";
      }
      std::size_t needed = 0;
      for (const auto& message : other.recorded->responses) needed += message.last_byte_ns < time_ns ? 1 : 0;
      if (other.recorded->first_byte_ns >= 0 && other.recorded->first_byte_ns < time_ns) {
        EXPECT_TRUE(calls_[i].headers);
      }
      EXPECT_GE(calls_[i].messages, needed) << "of call " << i << " at a step of call " << action.call;
    }
  }

  void answer_later(uint32_t call) { coming_.emplace(now_ + static_cast<int64_t>(random_() % 2'000'000), call); }

  // The next thing that happens: an answer's next piece, or a timer.
  bool step() {
    const auto due = scheduler_.next_due();
    if (!coming_.empty() && (!due || coming_.begin()->first <= due->ns)) {
      const auto [time_ns, call] = *coming_.begin();
      coming_.erase(coming_.begin());
      now_ = std::max(now_, time_ns);
      answer(call);
      return true;
    }
    if (!due) {
      if (!scheduler_.done()) ADD_FAILURE() << "nothing is due, nothing can come, and the session is not done";
      return false;
    }
    now_ = std::max(now_, due->ns);
    return true;
  }

  void answer(uint32_t call) {
    auto& state = calls_[call];
    const auto& planned = session_.calls[call];
    if (state.over) return;
    if (!reliable_ && random_() % 50 == 0) return end(call);
    if (!state.headers) {
      state.headers = true;
      scheduler_.response_headers(call, {now_});
    } else if (state.messages < planned.recorded->responses.size()) {
      ++state.messages;
      scheduler_.response_message(call, {now_});
    } else if (!planned.cut()) {
      return end(call);
    } else {
      return;  // until it is cancelled
    }
    coming_.emplace(now_ + static_cast<int64_t>(random_() % 20'000), call);
  }

  void end(uint32_t call) {
    calls_[call].over = true;
    scheduler_.ended(call, {now_});
  }

  const Session& session_;
  Scheduler scheduler_;
  std::mt19937_64 random_;
  bool reliable_;
  std::vector<State> calls_;
  std::multimap<int64_t, uint32_t> coming_;
  int64_t now_ = 1'000'000'000;
};

class WholeSessions : public testing::TestWithParam<const char*> {};

TEST_P(WholeSessions, ArePlayedToTheEndInOrder) {
  const auto connections = test::recorded_fixture(GetParam());
  for (const auto& connection : connections) {
    const auto session = make_session(connection, {.send_transactions = true});
    for (const auto pace : {Pace::think, Pace::recorded, Pace::none}) {
      for (uint64_t seed = 1; seed <= 6; ++seed) {
        SCOPED_TRACE("connection " + std::to_string(connection.id) + " pace " + std::to_string(static_cast<int>(pace)) +
                     " seed " + std::to_string(seed));
        FakeServer server(session, {.pace = pace, .speed = seed % 2 ? 1.0 : 7.0}, seed, seed % 3 != 0);
        server.play();
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, WholeSessions,
                         testing::Values("zaino-zingo", "ztreamer-zingo", "zaino-zingo-send", "zaino-zingo-memo-error",
                                         "zaino-python", "ztreamer-python", "zebra-ghz", "zaino-okhttp",
                                         "lightwalletd-grpcjs", "lightwalletd-grpcurl"),
                         [](const auto& fixture) {
                           std::string name = fixture.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace ztape::replay
