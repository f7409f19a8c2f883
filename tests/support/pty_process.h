// A child process on a terminal of its own, and what stands on its screen.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace ztape::test {

// As much of a terminal as the program's output needs: lines, carriage returns, cursor up, clear to the line's and the
// screen's end, styles (which are dropped). Throws std::runtime_error for any other control, and for a cursor that
// moves up out of the screen.
class Screen {
 public:
  Screen(std::size_t columns, std::size_t rows) : columns_(columns), rows_(rows), lines_(1) {}
  void write(const std::string& bytes);
  // What stands there stays as it is: as xterm does it.
  void resize(std::size_t columns, std::size_t rows) {
    columns_ = columns;
    rows_ = rows;
  }
  // What was scrolled off included, without trailing blanks.
  [[nodiscard]] std::vector<std::string> lines() const;
  [[nodiscard]] std::string text() const;

 private:
  void control(const std::string& parameters, char kind);
  void next_line();
  std::size_t columns_, rows_;
  std::vector<std::string> lines_;
  std::size_t row_ = 0, column_ = 0;
  std::string unfinished_;  // an escape whose rest comes later
};

class PtyProcess {
 public:
  // `environment`: "NAME=value", in place of ours. Throws std::runtime_error.
  PtyProcess(const std::vector<std::string>& arguments, std::size_t columns, std::size_t rows,
             const std::vector<std::string>& environment = {});
  ~PtyProcess();
  PtyProcess(const PtyProcess&) = delete;
  PtyProcess& operator=(const PtyProcess&) = delete;

  // Reads until the screen is as wanted; throws std::runtime_error, with the screen, where it does not come to that.
  void wait_for(const std::string& what, const std::function<bool(const Screen&)>& wanted);
  void wait_for(const std::string& text);
  // The window's size; the process is told. What comes from now on is for the new one.
  void resize(std::size_t columns, std::size_t rows);
  void signal(int number) const;
  // Until it is stopped by a signal, as after Ctrl-Z.
  void wait_for_stop();
  // As Ctrl-S and Ctrl-Q: what is written to the terminal waits.
  void stop_output();
  void start_output();
  // Reads to its end: the exit status, or 128 + the signal.
  int wait();

  [[nodiscard]] const Screen& screen() const { return screen_; }
  [[nodiscard]] std::size_t bytes_read() const { return bytes_read_; }

 private:
  bool read_some(int milliseconds);  // false: the end
  pid_t pid_ = -1;
  int fd_ = -1;
  Screen screen_;
  std::size_t bytes_read_ = 0;
};

}  // namespace ztape::test
