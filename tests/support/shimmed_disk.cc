#include "tests/support/shimmed_disk.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace ztape::test {

ShimmedDisk::ShimmedDisk() {
  set("");
}

std::vector<std::string> ShimmedDisk::launcher() const {
  const char* const given = std::getenv("ASAN_OPTIONS");  // its runtime wants to be the first otherwise
  return {"env", "LD_PRELOAD=" ZTAPE_DISK_SHIM, "ZTAPE_SHIM=" + folder_.file("wishes"),
          std::string("ASAN_OPTIONS=verify_asan_link_order=0:") + (given ? given : "")};
}

// In one step: the program reads it at any time.
void ShimmedDisk::set(const std::string& wishes) {
  {
    std::ofstream file(folder_.file("new"));
    file << wishes << "\n";
    if (!file) throw std::runtime_error("the wishes cannot be written");
  }
  if (std::rename(folder_.file("new").c_str(), folder_.file("wishes").c_str()) != 0) {
    throw std::runtime_error("the wishes cannot be renamed");
  }
}

}  // namespace ztape::test
