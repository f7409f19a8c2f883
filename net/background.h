// Work that would hold the loop up, done beside it on a thread of libuv's pool.
#pragma once

#include <functional>

#include "net/loop.h"

namespace ztape::net {

// Calls `work` on another thread, and after it `done` on the loop's. Both must own what they use: neither can be called
// off, and the loop's run() does not end before `done` has come.
void run_beside(Loop& loop, std::function<void()> work, std::function<void()> done);

}  // namespace ztape::net
