// What a relay, a server or a client does with one connection, whether it is plain TCP or TLS on it.
//
// Belongs to one loop and its thread. Destroyed by its owner at any time, also from inside its own callbacks. No
// callback comes after close() or the destructor.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "net/slab.h"
#include "net/socket_options.h"
#include "proto/words.h"

namespace ztape::net {

// What a TLS handshake agreed on; the fields of capture.proto's TlsState.
struct TlsFacts {
  std::string version;       // "TLSv1.3"
  std::string cipher;        // OpenSSL's name, "TLS_AES_256_GCM_SHA384"
  std::string alpn;          // "h2"; "" where none was agreed on
  std::string server_name;   // SNI, as the client sent it; "" for none
  std::string verification;  // of the peer's certificate: "ok", "not asked for", or what is wrong with it
};

class Connection {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    // What one read brought; `time` is the clock right after it. The slice keeps the bytes alive as long as it is kept.
    // Over TLS: plaintext, with the time of the read that completed its last record.
    virtual void on_read(Slice bytes, MonotonicTime time) = 0;
    // The peer's FIN, or over TLS its close_notify; truncated() tells whether that was missing.
    virtual void on_eof(MonotonicTime time) = 0;
    // The connection failed: `system_error` is "ECONNRESET", ..., or "TLS: " and a reason. Nothing follows but the
    // destructor. Bytes that had arrived before a reset are read first: while reading is paused, a failure waits for
    // start_reading().
    virtual void on_error(const std::string& system_error, MonotonicTime time) = 0;
    // Everything given to write() is in the kernel; only after write() had to queue.
    virtual void on_drained() {}
  };

  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  virtual void set_handler(Handler* handler) = 0;  // before the first read; must outlive the connection or be replaced
  virtual void start_reading() = 0;                // idempotent; never calls back from inside
  virtual void pause_reading() = 0;

  // One write(2) of all the pieces if the kernel takes them (writev); the rest is queued and the slices are kept.
  virtual void write(std::span<const Slice> pieces) = 0;
  void write(std::string bytes);
  [[nodiscard]] virtual std::size_t queued_bytes() const = 0;  // as they go to the kernel: ciphertext over TLS

  virtual void half_close() = 0;  // FIN after what is queued; over TLS close_notify before it
  // As half_close(), but over TLS without close_notify: the peer shall see that the end is not the sender's word.
  virtual void half_close_truncated() { half_close(); }
  // Now, without callbacks. What is queued here is dropped; the kernel ends the connection with a FIN, or with an RST
  // where the peer had sent bytes that were not read.
  virtual void close() = 0;
  virtual void reset() = 0;  // RST now; drops what the peer has not acknowledged
  // RST once the peer has acknowledged all that is queued (an RST before that would take unread bytes with it), or
  // after kResetPatienceNs without progress. No callbacks any more.
  static void reset_after_drain(std::unique_ptr<Connection> connection) { connection->start_drain(true); }
  // close() once all that is queued here is in the kernel and the peer has acknowledged it; for the latter it waits
  // kResetPatienceNs at most without progress. No callbacks any more. Over TLS with a close_notify, unless there was a
  // half-close before.
  static void close_after_drain(std::unique_ptr<Connection> connection) { connection->start_drain(false); }

  [[nodiscard]] virtual std::optional<TcpInfo> tcp_info() const = 0;
  [[nodiscard]] virtual std::string congestion_control() const = 0;
  [[nodiscard]] virtual std::string local_text() const = 0;  // "127.0.0.1:50000"
  [[nodiscard]] virtual std::string peer_text() const = 0;
  [[nodiscard]] virtual int fd() const = 0;
  [[nodiscard]] virtual const TlsFacts* tls() const { return nullptr; }  // nullptr: plaintext
  // After on_eof(): over TLS, the FIN came without a close_notify.
  [[nodiscard]] virtual bool truncated() const { return false; }

 protected:
  Connection() = default;
  // Lets go of the socket, which ends by itself.
  virtual void start_drain(bool reset_at_end) = 0;
};

}  // namespace ztape::net
