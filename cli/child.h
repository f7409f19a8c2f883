// Runs this very program with other arguments beside us: how `ztape demo` has a server, a proxy and a replayer at once.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "proto/error.h"

namespace ztape::cli {

// Its stdout is read here, its stderr is ours. Ended (SIGKILL) and reaped with its owner.
class Child {
 public:
  // Errors: io.
  static Result<Child> start(const std::vector<std::string>& arguments);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  // Waits for the next line of stdout, without its end; "" when there is none any more.
  std::string line();
  // SIGINT, then as wait().
  int interrupt();
  // Reads stdout to its end and waits: the exit status, or 128 + the signal that ended it.
  int wait();

  [[nodiscard]] pid_t pid() const { return pid_; }                     // -1 once it was waited for
  [[nodiscard]] const std::string& output() const { return output_; }  // read so far
  [[nodiscard]] const std::string& command_line() const { return command_line_; }

 private:
  Child(pid_t pid, int out, std::string command_line) : pid_(pid), out_(out), command_line_(std::move(command_line)) {}
  bool read_more();

  pid_t pid_ = -1;
  int out_ = -1;
  std::size_t consumed_ = 0;
  std::string output_;
  std::string command_line_;
};

}  // namespace ztape::cli
