// TCP on libuv: a connection, accepted (net/listener.h) or made, its socket options, TCP_INFO.
//
// A connection owns its handle: open, closing, closed. It is destroyed by its owner at any time, also from inside its
// own callbacks; the handle itself is freed in uv's close callback. No callback comes after close() or the destructor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/address.h"
#include "net/connection.h"
#include "net/loop.h"
#include "net/slab.h"
#include "net/socket_options.h"
#include "proto/error.h"
#include "proto/words.h"

namespace ztape::net {

inline constexpr int64_t kResetPatienceNs = 10'000'000'000;

class TcpConnection final : public Connection {
 public:
  ~TcpConnection() override;

  void set_handler(Handler* handler) override;
  void start_reading() override;
  void pause_reading() override;
  // Puts back what was read in front of what comes next: a preamble's reader gives the rest to whoever is to have the
  // connection from now on. While reading is paused only. It comes again, with its time, after start_reading().
  void unread(Slice bytes, MonotonicTime time);
  using Connection::write;
  void write(std::span<const Slice> pieces) override;
  [[nodiscard]] std::size_t queued_bytes() const override;
  void half_close() override;
  void close() override;
  void reset() override;

  Result<void> set_options(const SocketOptions& options);
  [[nodiscard]] std::optional<TcpInfo> tcp_info() const override;
  [[nodiscard]] std::string congestion_control() const override;
  [[nodiscard]] std::string local_text() const override;
  [[nodiscard]] std::string peer_text() const override;
  [[nodiscard]] int fd() const override;
  [[nodiscard]] Loop& loop() const;  // not after close()

  struct Impl;
  explicit TcpConnection(Impl* impl);

 private:
  void start_drain(bool reset_at_end) override;
  Impl* impl_;  // nullptr once closed: the loop then frees it
};

// Connects to the first address that answers. The callback comes once, on the loop, unless the Connector is destroyed
// first.
class Connector {
 public:
  using Callback = std::function<void(Result<std::unique_ptr<TcpConnection>>)>;
  Connector(Loop& loop, std::vector<SocketAddress> addresses, const SocketOptions& options, int64_t timeout_ns,
            Callback callback);
  ~Connector();
  // Of the attempt under way, "127.0.0.1:50000"; "" between attempts and after the last.
  [[nodiscard]] std::string local_text() const;
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

 private:
  struct Impl;
  Impl* impl_;
};

}  // namespace ztape::net
