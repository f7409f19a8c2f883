// `ztape show` of what comes one after another: of a capture that is still being written, and of messages, which are
// not all held at once.
#pragma once

#include "cli/show_options.h"

namespace ztape::cli {

// Prints calls, frames or messages as they end. The exit status.
int show_as_they_come(const ShowOptions& show);

// What could not be read, a line each on stderr; the exit status.
int say_damage(const std::vector<Damage>& damage, const std::string& file);

}  // namespace ztape::cli
