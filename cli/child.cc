#include "cli/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

extern char** environ;

namespace ztape::cli {

Result<Child> Child::start(const std::vector<std::string>& arguments) {
  std::string command_line = "ztape";
  std::vector<std::string> words{"ztape"};
  words.reserve(arguments.size() + 1);
  for (const auto& argument : arguments) {
    words.push_back(argument);
    command_line += " " + argument;
  }
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::unexpected(Error{ErrorCode::io, std::strerror(errno), "pipe"});
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failed != 0) {
    ::close(ends[0]);
    return std::unexpected(Error{ErrorCode::io, std::strerror(failed), command_line});
  }
  return Child(pid, ends[0], std::move(command_line));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      out_(std::exchange(other.out_, -1)),
      consumed_(other.consumed_),
      output_(std::move(other.output_)),
      command_line_(std::move(other.command_line_)) {}

Child::~Child() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
}

bool Child::read_more() {
  std::array<char, 4096> piece;
  ssize_t count = 0;
  do {
    count = ::read(out_, piece.data(), piece.size());
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return false;
  output_.append(piece.data(), static_cast<std::size_t>(count));
  return true;
}

std::string Child::line() {
  for (;;) {
    if (const auto end = output_.find('\n', consumed_); end != std::string::npos) {
      const auto text = output_.substr(consumed_, end - consumed_);
      consumed_ = end + 1;
      return text;
    }
    if (!read_more()) return "";
  }
}

int Child::interrupt() {
  if (pid_ > 0) ::kill(pid_, SIGINT);
  return wait();
}

int Child::wait() {
  while (read_more()) {
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace ztape::cli
