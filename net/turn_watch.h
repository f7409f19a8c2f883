// How long a loop is busy between two waits for events.
#pragma once

#include <functional>

#include "net/loop.h"

namespace ztape::net {

// Tells how long each turn of the loop took that had events: from the first callback to the next wait for events. What
// arrives in that time is looked at after it only. One a loop; it does not keep run() from ending.
class TurnWatch {
 public:
  using OnTurn = std::function<void(MonotonicTime began, MonotonicTime ended)>;  // right before the wait
  TurnWatch(Loop& loop, OnTurn on_turn);
  ~TurnWatch();
  TurnWatch(const TurnWatch&) = delete;
  TurnWatch& operator=(const TurnWatch&) = delete;

 private:
  struct Impl;
  Impl* impl_;
};

}  // namespace ztape::net
