#include "cli/descriptors.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "net/descriptor.h"

namespace ztape::cli {
namespace {

// The loop takes four, a listener, a capture and what is spared for later ten more, a connection two.
constexpr int kFewest = 24;

}  // namespace

Result<void> prepare_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    const auto before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    // A sandbox may forbid it: what we have must do then.
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
      spdlog::debug("ulimit -n stays {}: {}", before, std::strerror(errno));
      limit.rlim_cur = before;
    }
  }
  if (net::descriptors_left(kFewest)) return {};
  return std::unexpected(Error{.code = ErrorCode::usage,
                               .message =
                                   "is too small to start: raise the hard limit (ulimit -Hn) to 64 at least, and "
                                   "two more for every connection",
                               .subject = "ulimit -n " + std::to_string(limit.rlim_cur)});
}

}  // namespace ztape::cli
