// The limit of open file descriptors (getrlimit(2), RLIMIT_NOFILE): `ulimit -n`.
#pragma once

#include "proto/error.h"

namespace ztape::cli {

// Raises the soft limit to the hard one, as far as the system lets us, and makes sure that a command can start at all:
// its loop, its files and a few connections. Errors: usage, with what to do.
Result<void> prepare_descriptors();

}  // namespace ztape::cli
