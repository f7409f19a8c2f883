// Sends much while a test does something else.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "tests/support/sockets.h"

namespace ztape::test {

// Bytes that do not compress, the same for the same seed.
std::string pattern(std::size_t bytes, uint32_t seed = 1);

// Sends on a thread of its own; an error (the proxy is gone) ends it. Both must outlive it.
class Sender {
 public:
  Sender(Socket& socket, const std::string& bytes) : thread_([&socket, &bytes, this] { run(socket, bytes); }) {}
  ~Sender() { thread_.join(); }
  [[nodiscard]] std::size_t sent() const { return sent_; }

  // Until nothing was taken from us for a while: whoever reads has stopped.
  void wait_until_stuck() const;

 private:
  void run(Socket& socket, const std::string& bytes);

  std::atomic<std::size_t> sent_{0};
  std::thread thread_;
};

}  // namespace ztape::test
