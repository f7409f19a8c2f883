// A connection from a balancer whose PROXY header has not come whole yet. Lives on the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/loop.h"
#include "net/tcp.h"
#include "proto/words.h"
#include "proxy/proxy_protocol.h"

namespace ztape::proxy {

class ProxyHeaderWait final : public net::Connection::Handler {
 public:
  struct Outcome {
    std::unique_ptr<net::TcpConnection> connection;  // what came after the header comes again when it is read
    std::string source;                              // ProxyHeaderReader::source()
    std::string problem;                             // why there is no header, and `connection` is to be closed
    bool silent = false;  // it ended without a byte, as a balancer's check whether we are there does
  };

  // Begins to read. `on_done` is called once, and may destroy this object.
  ProxyHeaderWait(net::Loop& loop, std::unique_ptr<net::TcpConnection> connection, int64_t patience_ns,
                  std::function<void(Outcome)> on_done);

 private:
  void on_read(net::Slice bytes, MonotonicTime time) override;
  void on_eof(MonotonicTime time) override;
  void on_error(const std::string& system_error, MonotonicTime time) override;
  void done(std::string problem);

  std::unique_ptr<net::TcpConnection> connection_;
  std::function<void(Outcome)> on_done_;
  ProxyHeaderReader reader_;
  net::Timer timer_;
};

}  // namespace ztape::proxy
