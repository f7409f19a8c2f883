#include "cli/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace ztape::cli {

std::unique_ptr<Terminal> Terminal::behind(int fd) {
  if (isatty(fd) == 0) return nullptr;
  const char* kind = std::getenv("TERM");
  if (!kind || *kind == '\0' || std::string_view(kind) == "dumb") return nullptr;
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  net::Descriptor own(open(path.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  if (!own.open()) return nullptr;  // somebody else's terminal
  return std::unique_ptr<Terminal>(new Terminal(std::move(own)));
}

Terminal::Size Terminal::size() const {
  winsize size{};
  if (ioctl(own_.fd(), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

bool Terminal::in_foreground() const {
  const pid_t group = tcgetpgrp(own_.fd());
  return group < 0 || group == getpgrp();  // not our controlling terminal: nobody types to a shell on it
}

bool Terminal::wants_color() {
  const char* no_color = std::getenv("NO_COLOR");
  return !no_color || *no_color == '\0';
}

bool Terminal::write(std::string text) {
  if (!flush()) return false;
  unwritten_ = std::move(text);
  flush();
  return true;
}

bool Terminal::flush() {
  while (!unwritten_.empty()) {
    const ssize_t taken = ::write(own_.fd(), unwritten_.data(), unwritten_.size());
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0 && errno != EAGAIN) unwritten_.clear();  // the terminal is gone: nobody reads
    if (taken <= 0) break;
    unwritten_.erase(0, static_cast<std::size_t>(taken));
  }
  return unwritten_.empty();
}

bool Terminal::flush_within(int milliseconds) {
  while (!flush()) {
    pollfd ready{.fd = own_.fd(), .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, milliseconds) <= 0) return false;
  }
  return true;
}

}  // namespace ztape::cli
