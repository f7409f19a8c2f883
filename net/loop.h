// One libuv loop: runs on the thread that calls run(). Every wrapper in net/ belongs to one loop and its thread.
#pragma once

#include <uv.h>

#include <functional>
#include <memory>

#include "net/slab.h"
#include "proto/words.h"

namespace ztape::net {

// CLOCK_MONOTONIC now.
MonotonicTime monotonic_now();
// CLOCK_REALTIME now.
WallTime wall_now();

struct SignalWatch;

class Loop {
 public:
  Loop();  // also makes the process ignore SIGPIPE: a write to a closed connection is an error, not a signal
  // The wrappers that were made on it must be gone before it. What still closes or drains by itself is closed now, the
  // close callbacks are run, and uv_loop_close is expected to return 0.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Until no handle is active, or stop().
  void run();
  void stop();
  // One turn without waiting.
  void poll();

  [[nodiscard]] uv_loop_t* raw() { return &loop_; }
  [[nodiscard]] ReadSlabs& read_slabs() { return slabs_; }

  // The wrappers of net/ say so when uv calls them back: the first one begins a turn, for TurnWatch.
  void note_event() {
    if (turns_watched_ && turn_began_.ns == 0) turn_began_ = monotonic_now();
  }

 private:
  friend class TurnWatch;
  uv_loop_t loop_{};
  ReadSlabs slabs_;
  bool turns_watched_ = false;
  MonotonicTime turn_began_;  // 0: none is under way
};

// A one-shot timer. Destroying it cancels it. Resolution: uv's timers tick in whole milliseconds; start_at() arms for
// the millisecond before and then spins through the loop, so that an absolute deadline is met within some 50 us.
class Timer {
 public:
  using Callback = std::function<void()>;
  explicit Timer(Loop& loop);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void start(int64_t delay_ns, Callback callback);
  void start_at(MonotonicTime when, Callback callback);
  void cancel();
  [[nodiscard]] bool active() const;
  void let_loop_end();  // from now on it alone does not keep run() from ending

 private:
  struct Impl;
  Impl* impl_;  // freed in uv's close callback
};

// Calls back on the loop for SIGINT and SIGTERM; `count` is 1 for the first signal. Does not keep run() from ending.
class StopSignals {
 public:
  StopSignals(Loop& loop, std::function<void(int count)> callback);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  SignalWatch* watch_;
};

// The same for SIGHUP, which then does not end the process.
class HangupSignal {
 public:
  HangupSignal(Loop& loop, std::function<void()> callback);
  ~HangupSignal();
  HangupSignal(const HangupSignal&) = delete;
  HangupSignal& operator=(const HangupSignal&) = delete;

 private:
  SignalWatch* watch_;
};

// The same for SIGWINCH: the terminal's window has another size.
class WindowSignal {
 public:
  WindowSignal(Loop& loop, std::function<void()> callback);
  ~WindowSignal();
  WindowSignal(const WindowSignal&) = delete;
  WindowSignal& operator=(const WindowSignal&) = delete;

 private:
  SignalWatch* watch_;
};

// The same for SIGTSTP (Ctrl-Z), which then does not stop the process: the callback does, by SIGSTOP; not where SIGTSTP
// is ignored, as a shell without job control has it. And for SIGCONT.
class JobSignals {
 public:
  JobSignals(Loop& loop, std::function<void()> on_suspend, std::function<void()> on_continue);
  ~JobSignals();
  JobSignals(const JobSignals&) = delete;
  JobSignals& operator=(const JobSignals&) = delete;

 private:
  SignalWatch* suspend_ = nullptr;  // null: ignored
  SignalWatch* continue_;
};

// Wakes the loop from another thread; wake-ups may merge.
class Wakeup {
 public:
  Wakeup(Loop& loop, std::function<void()> callback);
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;
  void wake();          // any thread
  void let_loop_end();  // from now on it alone does not keep run() from ending

 private:
  struct Impl;
  Impl* impl_;
};

}  // namespace ztape::net
