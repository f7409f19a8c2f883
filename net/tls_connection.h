// TLS on a TcpConnection: a Connection whose bytes are the plaintext.
//
// It is one from its first moment on: while the handshake is under way its addresses and TCP_INFO can be read, and it
// can be closed or reset. Reading and writing begin after the handshake.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "net/connection.h"
#include "net/tcp.h"
#include "net/tls_context.h"
#include "net/tls_engine.h"
#include "proto/error.h"

namespace ztape::net {

inline constexpr int64_t kHandshakeTimeoutNs = 10'000'000'000;

class TlsConnection final : public Connection {
 public:
  // Called once, on the loop, never from inside accept(), connect() or answer(); it may destroy the connection. After
  // an error (protocol; the subject is the peer's address) close_after_drain() lets the peer have the alert.
  using OnHandshake = std::function<void(Result<void>)>;
  // A server's, where its handshake waits for an answer.
  using OnHello = std::function<void(const TlsClientHello&)>;

  // The listener's end. What the peer has sent before may be given back to `socket` (unread()) first.
  static std::unique_ptr<TlsConnection> accept(std::unique_ptr<TcpConnection> socket,
                                               std::shared_ptr<TlsContext> context, const TlsServerHandshake& handshake,
                                               OnHandshake on_handshake, OnHello on_hello = nullptr,
                                               int64_t timeout_ns = kHandshakeTimeoutNs);
  // The client's end of a socket that is connected.
  static std::unique_ptr<TlsConnection> connect(std::unique_ptr<TcpConnection> socket,
                                                std::shared_ptr<TlsContext> context,
                                                const TlsClientHandshake& handshake, OnHandshake on_handshake,
                                                int64_t timeout_ns = kHandshakeTimeoutNs);
  ~TlsConnection() override;

  // After OnHello: the protocol to agree to, one the client offered, or "" for none.
  void answer(std::string alpn);

  void set_handler(Handler* handler) override;
  void start_reading() override;
  void pause_reading() override;
  using Connection::write;
  void write(std::span<const Slice> pieces) override;
  [[nodiscard]] std::size_t queued_bytes() const override;
  void half_close() override;
  void half_close_truncated() override;
  void close() override;
  void reset() override;

  [[nodiscard]] std::optional<TcpInfo> tcp_info() const override;
  [[nodiscard]] std::string congestion_control() const override;
  [[nodiscard]] std::string local_text() const override;
  [[nodiscard]] std::string peer_text() const override;
  [[nodiscard]] int fd() const override;
  [[nodiscard]] const TlsFacts* tls() const override;  // nullptr before the handshake is done
  [[nodiscard]] bool truncated() const override;

 private:
  struct Impl;
  explicit TlsConnection(std::shared_ptr<Impl> impl);
  void start_drain(bool reset_at_end) override;
  std::shared_ptr<Impl> impl_;  // shared with a callback under way; nullptr once closed
};

}  // namespace ztape::net
