// How late the recorder's own loop was, in a line.
#pragma once

#include <cstdint>
#include <string>

#include "proto/histogram.h"

namespace ztape::report {

// "event loop lag: max 3.1 ms, p99 0.21 ms" with a line end; "" where nothing is known.
std::string lag_line(const Histogram& turns, int64_t max_ns);

}  // namespace ztape::report
