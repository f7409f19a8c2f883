#include "net/turn_watch.h"

#include <cstdlib>
#include <utility>

#include "net/loop_handle.h"

namespace ztape::net {

struct TurnWatch::Impl final : LoopHandle {
  uv_prepare_t prepare{};
  Loop& loop;
  OnTurn on_turn;
  bool closing = false;

  Impl(Loop& on, OnTurn callback) : loop(on), on_turn(std::move(callback)) {
    uv_prepare_init(loop.raw(), &prepare);  // neither can fail
    prepare.data = static_cast<LoopHandle*>(this);
    uv_prepare_start(&prepare, [](uv_prepare_t* handle) {
      static_cast<Impl*>(static_cast<LoopHandle*>(handle->data))->turn_ends();
    });
    uv_unref(reinterpret_cast<uv_handle_t*>(&prepare));
    loop.turns_watched_ = true;
  }

  void turn_ends() {
    const auto began = std::exchange(loop.turn_began_, {});
    if (began.ns != 0) on_turn(began, monotonic_now());
  }

  void close_handles() override {
    if (std::exchange(closing, true)) return;
    loop.turns_watched_ = false;

    uv_close(reinterpret_cast<uv_handle_t*>(&prepare),
             [](uv_handle_t* handle) { delete static_cast<Impl*>(static_cast<LoopHandle*>(handle->data)); });
  }
};

TurnWatch::TurnWatch(Loop& loop, OnTurn on_turn) : impl_(new Impl(loop, std::move(on_turn))) {}

TurnWatch::~TurnWatch() {
  impl_->close_handles();
}

}  // namespace ztape::net
