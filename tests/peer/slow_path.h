// A TCP path for one connection, slow from the server to the client: it stalls for a second after the first MiB, then
// goes on at some 60 MiB/s.
#pragma once

#include <string>
#include <thread>

#include "tests/support/sockets.h"

namespace ztape::test {

class SlowPath {
 public:
  explicit SlowPath(std::string upstream);
  ~SlowPath();  // once the connection is over
  SlowPath(const SlowPath&) = delete;
  SlowPath& operator=(const SlowPath&) = delete;
  [[nodiscard]] std::string address() const { return listener_.address(); }

 private:
  void carry();

  const std::string upstream_;
  ListeningSocket listener_;
  std::thread thread_;
};

}  // namespace ztape::test
