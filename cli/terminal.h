// The terminal that people see the program on. Writing to it never waits: one that was stopped (Ctrl-S) or hangs behind
// a slow line must not hold the caller up.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/descriptor.h"

namespace ztape::cli {

class Terminal {
 public:
  struct Size {
    std::size_t columns = 80;
    std::size_t rows = 24;
    friend bool operator==(const Size&, const Size&) = default;
  };

  // The one behind a standard stream; nullptr where that is no terminal, or one that cannot move its cursor.
  static std::unique_ptr<Terminal> behind(int fd);

  [[nodiscard]] Size size() const;  // as it is now
  // False: the shell has put us into the background, and what we print would disturb what is typed.
  [[nodiscard]] bool in_foreground() const;
  // NO_COLOR (https://no-color.org) is not set.
  [[nodiscard]] static bool wants_color();

  // Takes the text if all before it is written, else not: then try again later.
  bool write(std::string text);
  // Writes more of what was taken. True: all of it.
  bool flush();
  // The same, and waits for it for up to so long.
  bool flush_within(int milliseconds);

 private:
  explicit Terminal(net::Descriptor own) : own_(std::move(own)) {}
  net::Descriptor own_;  // a description of its own: O_NONBLOCK must not reach whoever shares the stream
  std::string unwritten_;
};

}  // namespace ztape::cli
