#include "net/loop.h"

#include <algorithm>
#include <cassert>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <utility>
#include <vector>

#include "net/loop_handle.h"

namespace ztape::net {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;

int64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// uv's calls below fail only for want of file descriptors or memory while a program starts; there is no way on then.
void must(int status) {
  if (status != 0) std::abort();
}

Loop& loop_of(const uv_loop_t* loop) {
  return *static_cast<Loop*>(loop->data);
}

}  // namespace

MonotonicTime monotonic_now() {
  return {clock_ns(CLOCK_MONOTONIC)};
}

WallTime wall_now() {
  return {clock_ns(CLOCK_REALTIME)};
}

Loop::Loop() {
  std::signal(SIGPIPE, SIG_IGN);
  must(uv_loop_init(&loop_));
  loop_.data = this;
}

Loop::~Loop() {
  uv_walk(
      &loop_,
      [](uv_handle_t* handle, void*) {
        if (!uv_is_closing(handle)) static_cast<LoopHandle*>(handle->data)->close_handles();
      },
      nullptr);
  uv_run(&loop_, UV_RUN_DEFAULT);
  [[maybe_unused]] const int status = uv_loop_close(&loop_);
  assert(status == 0);
}

void Loop::run() {
  uv_run(&loop_, UV_RUN_DEFAULT);
}

void Loop::stop() {
  uv_stop(&loop_);
}

void Loop::poll() {
  uv_run(&loop_, UV_RUN_NOWAIT);
}

struct Timer::Impl final : LoopHandle {
  uv_timer_t timer{};
  uv_idle_t spin{};
  int open_handles = 2;
  bool closing = false;
  MonotonicTime due;
  Callback callback;

  explicit Impl(Loop& loop) {
    must(uv_timer_init(loop.raw(), &timer));
    must(uv_idle_init(loop.raw(), &spin));
    timer.data = spin.data = static_cast<LoopHandle*>(this);
  }

  void close_handles() override {
    if (std::exchange(closing, true)) return;
    callback = nullptr;
    const auto closed = [](uv_handle_t* handle) {
      auto* self = static_cast<Impl*>(static_cast<LoopHandle*>(handle->data));
      if (--self->open_handles == 0) delete self;
    };
    uv_close(reinterpret_cast<uv_handle_t*>(&timer), closed);
    uv_close(reinterpret_cast<uv_handle_t*>(&spin), closed);
  }

  // The callback is moved out first: it may start the timer again or destroy it.
  void fire() {
    loop_of(timer.loop).note_event();
    uv_idle_stop(&spin);
    uv_timer_stop(&timer);
    const auto moved = std::exchange(callback, nullptr);
    if (moved) moved();
  }

  void start_spinning() {
    uv_idle_start(&spin, [](uv_idle_t* handle) {
      auto* self = static_cast<Impl*>(static_cast<LoopHandle*>(handle->data));
      if (monotonic_now() >= self->due) self->fire();
    });
  }

  void start_timer(int64_t delay_ms, uv_timer_cb on_time) {
    uv_update_time(timer.loop);
    uv_timer_start(&timer, on_time, static_cast<uint64_t>(std::max<int64_t>(0, delay_ms)), 0);
  }
};

Timer::Timer(Loop& loop) : impl_(new Impl(loop)) {}

Timer::~Timer() {
  impl_->close_handles();
}

void Timer::start(int64_t delay_ns, Callback callback) {
  cancel();
  impl_->callback = std::move(callback);
  impl_->start_timer((delay_ns + kNsPerMs - 1) / kNsPerMs,
                     [](uv_timer_t* handle) { static_cast<Impl*>(static_cast<LoopHandle*>(handle->data))->fire(); });
}

void Timer::start_at(MonotonicTime when, Callback callback) {
  cancel();
  impl_->callback = std::move(callback);
  impl_->due = when;
  const int64_t delay_ms = (when - monotonic_now()) / kNsPerMs - 1;
  if (delay_ms <= 0) {
    impl_->start_spinning();
    return;
  }
  impl_->start_timer(delay_ms, [](uv_timer_t* handle) {
    static_cast<Impl*>(static_cast<LoopHandle*>(handle->data))->start_spinning();
  });
}

void Timer::cancel() {
  uv_timer_stop(&impl_->timer);
  uv_idle_stop(&impl_->spin);
  impl_->callback = nullptr;
}

bool Timer::active() const {
  return impl_->callback != nullptr;
}

void Timer::let_loop_end() {
  uv_unref(reinterpret_cast<uv_handle_t*>(&impl_->timer));
  uv_unref(reinterpret_cast<uv_handle_t*>(&impl_->spin));
}

// Some signals, counted together. Does not keep the loop's run() from ending.
struct SignalWatch final : LoopHandle {
  std::vector<uv_signal_t> signals;
  std::size_t open_handles;
  int count = 0;
  bool closing = false;
  std::function<void(int)> callback;

  SignalWatch(Loop& loop, const std::vector<int>& numbers, std::function<void(int)> on_signal)
      : signals(numbers.size()), open_handles(numbers.size()), callback(std::move(on_signal)) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      must(uv_signal_init(loop.raw(), &signals[i]));
      signals[i].data = static_cast<LoopHandle*>(this);
      const auto on_number = [](uv_signal_t* handle, int) {
        auto* self = static_cast<SignalWatch*>(static_cast<LoopHandle*>(handle->data));
        if (self->closing) return;
        loop_of(handle->loop).note_event();
        const auto kept = self->callback;  // the callback may destroy the watch's owner
        kept(++self->count);
      };
      must(uv_signal_start(&signals[i], on_number, numbers[i]));
      uv_unref(reinterpret_cast<uv_handle_t*>(&signals[i]));
    }
  }

  void close_handles() override {
    if (std::exchange(closing, true)) return;
    for (auto& signal : signals) {
      uv_close(reinterpret_cast<uv_handle_t*>(&signal), [](uv_handle_t* handle) {
        auto* self = static_cast<SignalWatch*>(static_cast<LoopHandle*>(handle->data));
        if (--self->open_handles == 0) delete self;
      });
    }
  }
};

StopSignals::StopSignals(Loop& loop, std::function<void(int count)> callback)
    : watch_(new SignalWatch(loop, {SIGINT, SIGTERM}, std::move(callback))) {}

StopSignals::~StopSignals() {
  watch_->close_handles();
}

HangupSignal::HangupSignal(Loop& loop, std::function<void()> callback)
    : watch_(new SignalWatch(loop, {SIGHUP}, [then = std::move(callback)](int) { then(); })) {}

HangupSignal::~HangupSignal() {
  watch_->close_handles();
}

WindowSignal::WindowSignal(Loop& loop, std::function<void()> callback)
    : watch_(new SignalWatch(loop, {SIGWINCH}, [then = std::move(callback)](int) { then(); })) {}

WindowSignal::~WindowSignal() {
  watch_->close_handles();
}

JobSignals::JobSignals(Loop& loop, std::function<void()> on_suspend, std::function<void()> on_continue)
    : continue_(new SignalWatch(loop, {SIGCONT}, [then = std::move(on_continue)](int) { then(); })) {
  struct sigaction now{};
  if (sigaction(SIGTSTP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) return;
  suspend_ = new SignalWatch(loop, {SIGTSTP}, [then = std::move(on_suspend)](int) { then(); });
}

JobSignals::~JobSignals() {
  if (suspend_) suspend_->close_handles();
  continue_->close_handles();
}

struct Wakeup::Impl final : LoopHandle {
  uv_async_t async{};
  bool closing = false;
  std::function<void()> callback;

  Impl(Loop& loop, std::function<void()> on_wake) : callback(std::move(on_wake)) {
    must(uv_async_init(loop.raw(), &async, [](uv_async_t* handle) {
      auto* self = static_cast<Impl*>(static_cast<LoopHandle*>(handle->data));
      if (self->closing) return;
      loop_of(handle->loop).note_event();
      const auto kept = self->callback;
      kept();
    }));
    async.data = static_cast<LoopHandle*>(this);
  }

  void close_handles() override {
    if (std::exchange(closing, true)) return;
    uv_close(reinterpret_cast<uv_handle_t*>(&async),
             [](uv_handle_t* handle) { delete static_cast<Impl*>(static_cast<LoopHandle*>(handle->data)); });
  }
};

Wakeup::Wakeup(Loop& loop, std::function<void()> callback) : impl_(new Impl(loop, std::move(callback))) {}

Wakeup::~Wakeup() {
  impl_->close_handles();
}

void Wakeup::let_loop_end() {
  uv_unref(reinterpret_cast<uv_handle_t*>(&impl_->async));
}

void Wakeup::wake() {
  uv_async_send(&impl_->async);
}

}  // namespace ztape::net
