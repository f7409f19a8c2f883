// The words of `ztape show`, parsed and checked.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

#include "report/call_filter.h"
#include "report/call_groups.h"

namespace ztape::cli {

struct ShowOptions {
  enum class What { summary, calls, frames, messages, groups };

  std::string file;
  What what = What::summary;
  bool json = false;
  bool follow = false;
  std::vector<report::GroupKey> by;
  report::CallFilter filter;
  std::size_t width = 0;  // of what is printed; 0: as wide as it gets
};

// The int is the exit status to end with, as parse() has it.
std::expected<ShowOptions, int> parse_show_options(int argc, char** argv);

}  // namespace ztape::cli
