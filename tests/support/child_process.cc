#include "tests/support/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace ztape::test {

struct ChildProcess::Impl {
  std::string name;
  pid_t pid = -1;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::string text[2];  // stdout, stderr
  bool open[2] = {true, true};
  std::optional<int> status;
  std::thread readers[2];

  void read_all(int which, int fd) {
    char buffer[65536];
    for (;;) {
      const ssize_t size = read(fd, buffer, sizeof(buffer));
      if (size < 0 && errno == EINTR) continue;
      const std::lock_guard lock(mutex);
      if (size > 0) text[which].append(buffer, static_cast<std::size_t>(size));
      if (size <= 0) open[which] = false;
      changed.notify_all();
      if (size <= 0) break;
    }
    close(fd);
  }

  // Waits until `done`, under the lock; `still_possible` false ends the waiting early.
  void wait_until(const std::string& what, const std::function<bool()>& done,
                  const std::function<bool()>& still_possible) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, kPatience, [&] { return done() || !still_possible(); });
    if (!done()) throw std::runtime_error(name + ": " + what + " did not come; its stderr:\n" + text[1]);
  }
};

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) : impl_(std::make_unique<Impl>()) {
  impl_->name = arguments.at(0);
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  // A test may ignore signals that the child must not inherit as ignored.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t all;
  sigemptyset(&all);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM}) sigaddset(&all, number);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> words;
  for (const auto& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int status = posix_spawnp(&impl_->pid, words[0], &actions, &attributes, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(out[1]);
  close(err[1]);
  if (status != 0) {
    close(out[0]);
    close(err[0]);
    throw std::runtime_error(impl_->name + ": " + strerror(status));
  }
  impl_->readers[0] = std::thread([impl = impl_.get(), fd = out[0]] { impl->read_all(0, fd); });
  impl_->readers[1] = std::thread([impl = impl_.get(), fd = err[0]] { impl->read_all(1, fd); });
}

ChildProcess::~ChildProcess() {
  if (!impl_->status) {
    kill(impl_->pid, SIGKILL);
    waitpid(impl_->pid, nullptr, 0);
  }
  for (auto& reader : impl_->readers) reader.join();
}

std::string ChildProcess::line(std::size_t index) {
  std::string found;
  const auto has_line = [&] {
    std::size_t begin = 0;
    for (std::size_t i = 0;; ++i) {
      const auto end = impl_->text[0].find('\n', begin);
      if (end == std::string::npos) return false;
      if (i == index) {
        found = impl_->text[0].substr(begin, end - begin);
        return true;
      }
      begin = end + 1;
    }
  };
  impl_->wait_until("line " + std::to_string(index + 1) + " of stdout", has_line, [&] { return impl_->open[0]; });
  return found;
}

void ChildProcess::wait_for_stderr(const std::string& text) {
  impl_->wait_until(
      "'" + text + "' on stderr", [&] { return impl_->text[1].find(text) != std::string::npos; },
      [&] { return impl_->open[1]; });
}

void ChildProcess::signal(int number) const {
  if (!impl_->status) kill(impl_->pid, number);
}

int ChildProcess::wait() {
  if (impl_->status) return *impl_->status;
  // The ends of both pipes come with the process's end, unless a child of its own keeps them.
  impl_->wait_until("its end", [&] { return !impl_->open[0] && !impl_->open[1]; }, [] { return true; });
  int status = 0;
  while (waitpid(impl_->pid, &status, 0) < 0) {
    if (errno != EINTR) throw std::runtime_error("waitpid failed");
  }
  impl_->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return *impl_->status;
}

std::string ChildProcess::stdout_text() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->text[0];
}

std::string ChildProcess::stderr_text() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->text[1];
}

pid_t ChildProcess::pid() const {
  return impl_->pid;
}

uint64_t ChildProcess::resident_bytes() const {
  std::ifstream file("/proc/" + std::to_string(impl_->pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmRSS:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

Finished run(const std::vector<std::string>& arguments) {
  ChildProcess child(arguments);
  const int status = child.wait();
  return {status, child.stdout_text(), child.stderr_text()};
}

std::string ztape() {
  return ZTAPE_BINARY_DIR "/ztape";
}

}  // namespace ztape::test
