// TCP on libuv: a listener, a connection, socket options, TCP_INFO.
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
#include "net/loop.h"
#include "net/slab.h"
#include "net/socket_options.h"
#include "proto/error.h"
#include "proto/words.h"

namespace ztape::net {

inline constexpr int64_t kResetPatienceNs = 10'000'000'000;

class TcpConnection {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    // What one read brought; `time` is the clock right after it. The slice keeps the bytes alive as long as it is kept.
    virtual void on_read(Slice bytes, MonotonicTime time) = 0;
    virtual void on_eof(MonotonicTime time) = 0;
    // The connection failed: `system_error` is "ECONNRESET", .... Nothing follows but the destructor. Bytes that had
    // arrived before a reset are read first: while reading is paused, a failure waits for start_reading().
    virtual void on_error(const std::string& system_error, MonotonicTime time) = 0;
    // Everything given to write() is in the kernel; only after write() had to queue.
    virtual void on_drained() {}
  };

  ~TcpConnection();
  TcpConnection(const TcpConnection&) = delete;
  TcpConnection& operator=(const TcpConnection&) = delete;

  void set_handler(Handler* handler);  // before the first read; must outlive the connection or be replaced
  void start_reading();                // idempotent
  void pause_reading();

  // One write(2) of all the pieces if the kernel takes them (writev); the rest is queued and the slices are kept.
  void write(std::span<const Slice> pieces);
  void write(std::string bytes);
  [[nodiscard]] std::size_t queued_bytes() const;

  void half_close();  // FIN after what is queued
  // Now, without callbacks. What is queued here is dropped; the kernel ends the connection with a FIN, or with an RST
  // where the peer had sent bytes that were not read.
  void close();
  void reset();  // RST now; drops what the peer has not acknowledged
  // RST once the peer has acknowledged all that is queued (an RST before that would take unread bytes with it), or
  // after kResetPatienceNs without progress. No callbacks any more.
  static void reset_after_drain(std::unique_ptr<TcpConnection> connection);
  // close() once all that is queued here is in the kernel and the peer has acknowledged it; for the latter it waits
  // kResetPatienceNs at most without progress. No callbacks any more.
  static void close_after_drain(std::unique_ptr<TcpConnection> connection);

  Result<void> set_options(const SocketOptions& options);
  [[nodiscard]] std::optional<TcpInfo> tcp_info() const;
  [[nodiscard]] std::string congestion_control() const;
  [[nodiscard]] std::string local_text() const;  // "127.0.0.1:50000"
  [[nodiscard]] std::string peer_text() const;
  [[nodiscard]] int fd() const;

  struct Impl;
  explicit TcpConnection(Impl* impl);

 private:
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
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

 private:
  struct Impl;
  Impl* impl_;
};

class TcpListener {
 public:
  using OnConnection = std::function<void(std::unique_ptr<TcpConnection>)>;
  // SO_REUSEADDR; backlog 1024. Errors: address ("address already in use", ...).
  static Result<std::unique_ptr<TcpListener>> listen(Loop& loop, const SocketAddress& address,
                                                     OnConnection on_connection);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;
  [[nodiscard]] std::string local_text() const;  // with the port that port 0 became

 private:
  struct Impl;
  explicit TcpListener(Impl* impl);
  Impl* impl_;
};

}  // namespace ztape::net
