// One end of a TLS connection without a socket: ciphertext in and out, plaintext in and out. OpenSSL does the work.
//
// Input comes in by feed() in pieces of any size; step() and read() take what they can of it. What the peer has to get
// waits in take_output(), also after a failure (the alert).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/connection.h"
#include "net/slab.h"
#include "net/tls_context.h"

namespace ztape::net {

// What a client asks for at first (RFC 8446, section 4.1.2).
struct TlsClientHello {
  std::string server_name;        // SNI; "" for none
  std::vector<std::string> alpn;  // in the client's order; empty for none
};

struct TlsServerHandshake {
  // The protocols this end may agree to, the best first. A client that offers others only is refused (RFC 7301,
  // section 3.2); one that offers none gets none.
  std::vector<std::string> alpn;
  // The handshake waits after the client's hello until answer() names the protocol; `alpn` is not used.
  bool wait_for_answer = false;
};

struct TlsClientHandshake {
  std::string server_name;  // whom the certificate has to be for; also sent as SNI, unless it is an address
  std::vector<std::string> alpn;
};

class TlsEngine {
 public:
  TlsEngine(std::shared_ptr<TlsContext> context, const TlsServerHandshake& handshake);
  TlsEngine(std::shared_ptr<TlsContext> context, const TlsClientHandshake& handshake);
  ~TlsEngine();
  TlsEngine(const TlsEngine&) = delete;
  TlsEngine& operator=(const TlsEngine&) = delete;

  void feed(Slice ciphertext);
  [[nodiscard]] bool has_input() const;  // fed, and not taken yet

  enum class Step { needs_input, waits_for_answer, done, failed };
  // The handshake, as far as the input goes. A client's first one needs no input.
  Step step();
  // The hello that the handshake waits with, and the answer to it: a protocol the client offered, or "" for none.
  [[nodiscard]] const TlsClientHello& hello() const;
  void answer(std::string alpn);

  enum class Read { plaintext, needs_input, ended, failed };
  // After the handshake: one more piece of plaintext, which may hold several records; `ended` is the peer's
  // close_notify.
  Read read(Slice& plaintext);
  // After the handshake; nothing after close_notify() or a failure.
  void write(std::span<const Slice> plaintext);
  void close_notify();

  [[nodiscard]] std::vector<Slice> take_output();
  [[nodiscard]] TlsFacts facts() const;  // after the handshake
  // Why it failed, a sentence without a subject: "the peer does not trust this certificate (alert unknown CA)".
  [[nodiscard]] const std::string& failure() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace ztape::net
