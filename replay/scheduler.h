// When a virtual wallet takes its next step: events of one connection in, steps that are due out.
//
// Sans-I/O. One scheduler plays one session once. Every deadline is absolute and counts from the events it depends on,
// never from when a timer was served, so that lateness does not add up. Each event costs O(1), each step O(log open).
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "proto/words.h"
#include "replay/plan.h"

namespace ztape::replay {

enum class Pace {
  think,     // the wallet's own think time after what it waited for
  recorded,  // at the recorded time since the connection's opening, and not before what it waited for
  none,      // at once after what it waited for
};

struct Pacing {
  Pace pace = Pace::think;
  double speed = 1;  // divides think time and recorded times; deadlines stay
};

// A step to take now. `due` is when it should have been taken.
struct Action {
  StepKind kind = StepKind::start;
  uint32_t call = 0;
  uint32_t message = 0;
  MonotonicTime due;
};

class Scheduler {
 public:
  // `session` must outlive the scheduler. `left_out`: calls that this run does not send, beyond the plan's skipped
  // ones; empty: none. What a call that is not sent would have answered counts as met.
  Scheduler(const Session& session, const Pacing& pacing, const std::vector<bool>& left_out = {});

  // The connection is there: the session begins.
  void connected(MonotonicTime now);

  // What has come for an open call.
  void response_headers(uint32_t call, MonotonicTime now);
  void response_message(uint32_t call, MonotonicTime now);
  // It is over: by its trailers, a reset, a failure, or because it could not be sent. Steps of it that are left are
  // dropped. Also after the action `cancel` was carried out.
  void ended(uint32_t call, MonotonicTime now);

  // The next step that is due at `now`, in order of due times. A call counts as open from its `start` on.
  std::optional<Action> take_due(MonotonicTime now);

  // When the next step is due; nullopt: only an event can bring one.
  [[nodiscard]] std::optional<MonotonicTime> next_due() const;

  // Every call was started, and is over.
  [[nodiscard]] bool done() const { return calls_left_ == 0; }

 private:
  struct CallState {
    bool over = false;
    bool headers = false;
    uint32_t messages = 0;
    std::size_t events_met = 0;         // of PlannedCall::events
    const Step* waiting = nullptr;      // a cancel that waits for the call's own answer
    MonotonicTime last_due{INT64_MIN};  // steps of one call keep their order
  };
  struct Due {
    MonotonicTime at;
    uint32_t order = 0;  // of steps due at the same time
    Action action;
    bool operator>(const Due& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  void meet_answer(uint32_t call, MonotonicTime now);
  void release_steps(MonotonicTime now);
  void release(const Step& step, MonotonicTime now);
  [[nodiscard]] bool own_answer_met(const Step& step) const;
  void drop_over();

  const Session& session_;
  Pacing pacing_;
  MonotonicTime start_;
  std::vector<CallState> calls_;
  std::vector<bool> met_;      // by event
  std::size_t frontier_ = 0;   // events before it are met
  std::size_t next_step_ = 0;  // steps before it were released
  std::size_t calls_left_ = 0;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
};

}  // namespace ztape::replay
