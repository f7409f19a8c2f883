#include "net/descriptor.h"

#include <fcntl.h>

#include <vector>

namespace ztape::net {

bool descriptors_left(int count) {
  std::vector<Descriptor> probes;
  probes.reserve(static_cast<std::size_t>(count));
  Descriptor first(open("/", O_PATH | O_CLOEXEC));
  if (!first.open()) return false;
  for (int i = 1; i < count; ++i) {
    probes.emplace_back(fcntl(first.fd(), F_DUPFD_CLOEXEC, 0));
    if (!probes.back().open()) return false;
  }
  return true;
}

}  // namespace ztape::net
