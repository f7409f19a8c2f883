// A disk, and a wall clock, that misbehave when a test says so (disk_shim.cc).
#pragma once

#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace ztape::test {

class ShimmedDisk {
 public:
  ShimmedDisk();
  // What stands before the program (ProxyProcess), so that its disk is this one.
  [[nodiscard]] std::vector<std::string> launcher() const;
  // From now on, as disk_shim.cc has the words; "" is a good disk.
  void set(const std::string& wishes);

 private:
  TemporaryDirectory folder_;
};

}  // namespace ztape::test
