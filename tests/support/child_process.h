// A child process with its stdout and stderr captured. Killed and reaped with its owner.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ztape::test {

// What a test waits at most for anything that has to come; far beyond what a loaded machine needs.
inline constexpr std::chrono::seconds kPatience{60};

class ChildProcess {
 public:
  // Starts `arguments[0]`, by path or out of PATH. Throws std::runtime_error.
  explicit ChildProcess(const std::vector<std::string>& arguments);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Waits for a whole line `index` (from 0) of stdout; without its newline. Throws when the process ends before, or
  // after kPatience; the message has what it wrote to stderr.
  std::string line(std::size_t index = 0);
  // Waits until stderr holds `text`. Throws as line() does.
  void wait_for_stderr(const std::string& text);

  void signal(int number) const;
  // Waits for the end: the exit status, or 128 + the signal that ended it. Throws after kPatience.
  int wait();

  [[nodiscard]] std::string stdout_text() const;
  [[nodiscard]] std::string stderr_text() const;
  [[nodiscard]] pid_t pid() const;
  [[nodiscard]] uint64_t resident_bytes() const;  // VmRSS now; 0 when it is gone

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct Finished {
  int status = 0;
  std::string out;
  std::string err;
};

// Runs a program to its end.
Finished run(const std::vector<std::string>& arguments);

// The path of the built program.
std::string ztape();

}  // namespace ztape::test
