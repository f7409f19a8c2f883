// What the wrappers of net/ share inside: how the loop finds the wrapper of a handle when it is taken down.
#pragma once

namespace ztape::net {

// Every uv handle's `data` points to one of these. It frees itself in the close callback of its last handle.
class LoopHandle {
 public:
  // Closes the handles and forgets the owner; no callbacks any more. Idempotent.
  virtual void close_handles() = 0;

 protected:
  virtual ~LoopHandle() = default;
};

}  // namespace ztape::net
