// What the system says of this process.
#pragma once

#include <cstdint>
#include <optional>

namespace ztape::report {

// Linux, proc(5) and getrusage(2). What cannot be read is absent.
struct ProcessFigures {
  double cpu_seconds = 0;
  std::optional<uint64_t> resident_bytes;
  std::optional<uint64_t> open_descriptors;
  std::optional<uint64_t> most_descriptors;
};

// Any thread. With thousands of open descriptors it takes a millisecond.
ProcessFigures process_figures();

}  // namespace ztape::report
