// A folder of a test's own, gone with its owner.
#pragma once

#include <string>
#include <string_view>

namespace ztape::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory();  // throws std::runtime_error
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace ztape::test
