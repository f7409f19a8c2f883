// A listening TCP socket on a loop. It leaves connections in the kernel's backlog
// while it is paused or while the system has no descriptor for them (libuv's own listener accepts and closes those).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/address.h"
#include "net/descriptor.h"
#include "net/loop.h"
#include "net/tcp.h"
#include "proto/error.h"

namespace ztape::net {

struct ListenOptions {
  // IP_TRANSPARENT: also takes what a TPROXY rule sends here, whatever its address. Where that needs more privileges
  // than the process has, the socket listens without it; see TcpListener::transparent().
  bool transparent = false;
};

class TcpListener {
 public:
  using OnConnection = std::function<void(std::unique_ptr<TcpConnection>)>;  // may destroy the listener

  // SO_REUSEADDR; the backlog is as long as the system lets it be (net.core.somaxconn). An IPv6 wildcard takes IPv4
  // too. Errors: address ("address already in use", ...).
  static Result<std::unique_ptr<TcpListener>> listen(Loop& loop, const SocketAddress& address,
                                                     OnConnection on_connection, const ListenOptions& options = {});
  // Takes over a socket that listens already, as a service manager hands it on. Errors: address, where it is none.
  static Result<std::unique_ptr<TcpListener>> adopt(Loop& loop, Descriptor socket, OnConnection on_connection,
                                                    const ListenOptions& options = {});
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  // From pause() on nothing is accepted, not even within the same turn of the loop. Both are idempotent.
  void pause();
  void resume();
  void let_loop_end();  // from now on it alone does not keep the loop's run() from ending
  // accept(2) failed for want of descriptors or memory: it is tried again every 100 ms by itself. `system_error` is
  // "EMFILE", ....
  void set_on_exhausted(std::function<void(const std::string& system_error)> on_exhausted);

  [[nodiscard]] std::string local_text() const;  // with the port that port 0 became
  [[nodiscard]] bool transparent() const;

 private:
  struct Impl;
  explicit TcpListener(Impl* impl);
  Impl* impl_;
};

}  // namespace ztape::net
