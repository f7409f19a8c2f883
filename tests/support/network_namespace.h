// A network namespace of a test's own: interfaces, routes and firewall rules that nobody else sees, gone with its
// owner.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/support/child_process.h"

namespace ztape::test {

class NetworkNamespace {
 public:
  // Why this process cannot make one, or "": it takes CAP_SYS_ADMIN and CAP_NET_ADMIN, and the programs `ip` and
  // `nsenter`. For GTEST_SKIP.
  static std::string missing();

  // With its loopback interface up. Throws std::runtime_error.
  NetworkNamespace();
  ~NetworkNamespace();
  NetworkNamespace(const NetworkNamespace&) = delete;
  NetworkNamespace& operator=(const NetworkNamespace&) = delete;

  // What stands before a command that is to run inside.
  [[nodiscard]] std::vector<std::string> launcher() const;
  // Runs lines of the shell inside; throws with their stderr where one of them fails.
  void shell(const std::string& lines) const;
  // Calls on a thread that is inside: sockets that are made there stay there. Passes exceptions on.
  void inside(const std::function<void()>& call) const;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;  // keeps it alive
};

// A cable between two namespaces: interface `name` in each, with an IPv4 address as 10.9.1.1/24 and an IPv6 address as
// fd09:1::1/64.
struct CableEnd {
  const NetworkNamespace& at;
  std::string name, ipv4, ipv6;
};
void connect_by_cable(const CableEnd& one, const CableEnd& other);

}  // namespace ztape::test
