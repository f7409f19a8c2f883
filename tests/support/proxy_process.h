// `ztape proxy` as a child process.
#pragma once

#include <string>
#include <vector>

#include "tests/support/child_process.h"

namespace ztape::test {

class ProxyProcess {
 public:
  // `upstream` is an address or a URL. Listens on a free port of 127.0.0.1 unless `more` has a --listen of its own.
  // `launcher` stands before the program:
  // {"sh", "-c", "ulimit -f 64; exec \"$@\"", "sh"}. Throws as ChildProcess does.
  ProxyProcess(const std::string& upstream, const std::string& capture, const std::vector<std::string>& more = {},
               const std::vector<std::string>& launcher = {});

  // Where it listens, out of its first line.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] ChildProcess& process() { return process_; }
  // SIGTERM, then its exit status.
  int stop();

 private:
  ChildProcess process_;
  std::string address_;
};

}  // namespace ztape::test
