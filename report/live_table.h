// The proxy while it runs, as a few lines for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "proxy/live_facts.h"
#include "report/live_rates.h"

namespace ztape::report {

struct LiveTableOptions {
  std::size_t columns = 80;
  std::size_t rows = 24;  // of the window; the table leaves the last one free
  bool color = false;
};

// Lines without line ends, none wider than the window, at most rows - 1 of them. Of more methods than there is room for
// those with the most calls are shown, by name; the last line counts the others. Where the window is small, what
// matters less is left out first: what was lost and what failed stand there as long as there is a line for it.
std::vector<std::string> live_table(const proxy::LiveFacts& facts, const LiveRates& rates,
                                    const LiveTableOptions& options);

// Columns of a line without what sets its style.
std::size_t styled_width(const std::string& line);

}  // namespace ztape::report
