#include "tests/support/pty_process.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <stdexcept>

#include "tests/support/child_process.h"

namespace ztape::test {

void Screen::next_line() {
  if (++row_ == lines_.size()) lines_.emplace_back();
}

void Screen::control(const std::string& parameters, char kind) {
  const std::size_t number = parameters.empty() ? 0 : std::stoul(parameters);
  if (kind == 'm') return;
  if (kind == 'A') {
    const std::size_t first_visible = lines_.size() > rows_ ? lines_.size() - rows_ : 0;
    if (number == 0 || row_ < first_visible + number) throw std::runtime_error("the cursor leaves the screen");
    row_ -= number;
    return;
  }
  if ((kind == 'K' || kind == 'J') && number == 0) {
    // Behind the last column the cursor stands on it.
    lines_[row_].resize(std::min({lines_[row_].size(), column_, columns_ - 1}));
    if (kind == 'J') lines_.resize(row_ + 1);
    return;
  }
  throw std::runtime_error("a control that is not expected: ESC[" + parameters + kind);
}

void Screen::write(const std::string& bytes) {
  const std::string all = unfinished_ + bytes;
  unfinished_.clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const char c = all[i];
    if (c == '\x1b') {
      std::size_t end = i + 2;
      while (end < all.size() && (all[end] == ';' || (all[end] >= '0' && all[end] <= '9'))) ++end;
      if (end >= all.size()) {
        unfinished_ = all.substr(i);
        return;
      }
      if (all[i + 1] != '[') throw std::runtime_error("an escape that is not expected");
      control(all.substr(i + 2, end - i - 2), all[end]);
      i = end;
    } else if (c == '\r') {
      column_ = 0;
    } else if (c == '\n') {
      next_line();
    } else if (static_cast<unsigned char>(c) < 0x20) {
      throw std::runtime_error("a control character that is not expected");
    } else {
      if (column_ == columns_) {  // it wraps
        column_ = 0;
        next_line();
      }
      auto& line = lines_[row_];
      if (line.size() <= column_) line.resize(column_ + 1, ' ');
      line[column_++] = c;
    }
  }
}

std::vector<std::string> Screen::lines() const {
  auto all = lines_;
  for (auto& line : all) line.erase(line.find_last_not_of(' ') + 1);
  return all;
}

std::string Screen::text() const {
  std::string all;
  for (const auto& line : lines()) all += line + "\n";
  return all;
}

PtyProcess::PtyProcess(const std::vector<std::string>& arguments, std::size_t columns, std::size_t rows,
                       const std::vector<std::string>& environment)
    : screen_(columns, rows) {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = static_cast<unsigned short>(rows);
  // All that the child needs is made before the fork.
  std::vector<char*> words;
  for (const auto& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::vector<char*> variables;
  for (const auto& variable : environment) variables.push_back(const_cast<char*>(variable.c_str()));
  variables.push_back(nullptr);
  pid_ = forkpty(&fd_, nullptr, nullptr, &size);
  if (pid_ < 0) throw std::runtime_error("forkpty failed");
  if (pid_ == 0) {
    execve(words[0], words.data(), variables.data());
    _exit(127);
  }
  fcntl(fd_, F_SETFD, FD_CLOEXEC);
}

PtyProcess::~PtyProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (fd_ >= 0) close(fd_);
}

bool PtyProcess::read_some(int milliseconds) {
  pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, milliseconds) <= 0) return true;
  char buffer[4096];
  const ssize_t size = read(fd_, buffer, sizeof(buffer));
  if (size < 0 && errno == EINTR) return true;
  if (size <= 0) return false;  // EIO: the other end is closed
  bytes_read_ += static_cast<std::size_t>(size);
  screen_.write({buffer, static_cast<std::size_t>(size)});
  return true;
}

void PtyProcess::wait_for(const std::string& what, const std::function<bool(const Screen&)>& wanted) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!wanted(screen_)) {
    if (std::chrono::steady_clock::now() > until || !read_some(100)) {
      throw std::runtime_error(what + " did not come; the screen:\n" + screen_.text());
    }
  }
}

void PtyProcess::wait_for(const std::string& text) {
  wait_for("'" + text + "'", [&](const Screen& screen) { return screen.text().find(text) != std::string::npos; });
}

void PtyProcess::resize(std::size_t columns, std::size_t rows) {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = static_cast<unsigned short>(rows);
  screen_.resize(columns, rows);
  ioctl(fd_, TIOCSWINSZ, &size);
}

void PtyProcess::stop_output() {
  if (write(fd_, "\x13", 1) != 1) throw std::runtime_error("the terminal takes nothing");
}

void PtyProcess::start_output() {
  if (write(fd_, "\x11", 1) != 1) throw std::runtime_error("the terminal takes nothing");
}

void PtyProcess::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);
}

void PtyProcess::wait_for_stop() {
  int status = 0;
  while (waitpid(pid_, &status, WUNTRACED) < 0) {
    if (errno != EINTR) throw std::runtime_error("waitpid failed");
  }
  if (WIFSTOPPED(status)) return;
  pid_ = -1;
  throw std::runtime_error("it ended instead of being stopped:\n" + screen_.text());
}

int PtyProcess::wait() {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (read_some(100)) {
    if (std::chrono::steady_clock::now() > until) throw std::runtime_error("it does not end:\n" + screen_.text());
  }
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) throw std::runtime_error("waitpid failed");
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace ztape::test
