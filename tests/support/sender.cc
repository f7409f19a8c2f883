#include "tests/support/sender.h"

#include <poll.h>

#include <chrono>
#include <string_view>

namespace ztape::test {

std::string pattern(std::size_t bytes, uint32_t seed) {
  std::string text(bytes, '\0');
  uint32_t state = seed * 2654435761u + 1;
  for (auto& byte : text) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<char>(state >> 24);
  }
  return text;
}

void Sender::wait_until_stuck() const {
  std::size_t before = 0;
  for (int quiet = 0; quiet < 10;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    quiet = sent_ == before ? quiet + 1 : 0;
    before = sent_;
  }
}

void Sender::run(Socket& socket, const std::string& bytes) {
  while (sent_ < bytes.size()) {
    pollfd writable{.fd = socket.fd(), .events = POLLOUT, .revents = 0};
    poll(&writable, 1, 1000);
    if (writable.revents & (POLLERR | POLLHUP)) return;
    sent_ += socket.send_without_waiting(std::string_view(bytes).substr(sent_, 65536));
  }
}

}  // namespace ztape::test
