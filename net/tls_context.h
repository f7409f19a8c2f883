// What TLS connections of one kind share: certificate, key, trusted CAs. Made once from files, used by many
// connections; a reload makes a new one, and the connections of the old one go on with it.
//
// TLS 1.2 and 1.3 only; no renegotiation, no compression, no early data.
#pragma once

#include <memory>
#include <string>

#include "proto/error.h"

namespace ztape::net {

class TlsKeyLog;

// PEM files. The certificate's file may go on with its chain; certificate and key may be one file.
struct TlsServerFiles {
  std::string certificate;
  std::string key;
};

struct TlsClientFiles {
  std::string ca;           // "" for the system's CAs (SSL_CERT_FILE and SSL_CERT_DIR are honoured); else only these
  std::string certificate;  // "" for none; as for a server
  std::string key;
  bool insecure = false;  // the handshake goes on whatever the certificate is; what is wrong is still told
};

// Used on one thread, that of its connections' loop.
class TlsContext {
 public:
  // Blocking reads of the files. Errors (usage): the file and what is wrong with it: missing, not PEM, a key in the
  // certificate's place, an encrypted key, a key that does not belong to the certificate. `key_log` may be null.
  static Result<std::shared_ptr<TlsContext>> for_server(const TlsServerFiles& files,
                                                        std::shared_ptr<TlsKeyLog> key_log = nullptr);
  static Result<std::shared_ptr<TlsContext>> for_client(const TlsClientFiles& files,
                                                        std::shared_ptr<TlsKeyLog> key_log = nullptr);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // A server's certificate in a line for the log: "zec.example.org, www.example.org, valid until 2027-01-01"; "" for
  // a client's context.
  [[nodiscard]] std::string summary() const;
  // What a user should know of a server's certificate: it has expired, or is not valid yet; or "".
  [[nodiscard]] std::string warning() const;

  struct Impl;
  explicit TlsContext(std::unique_ptr<Impl> impl);
  [[nodiscard]] Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// The secrets of every connection in the NSS Key Log Format, so that Wireshark can read a packet capture. Whoever has
// the file can read the traffic.
class TlsKeyLog {
 public:
  // Appends to `path`, made with mode 0600 (an existing file must not be readable by others). Errors: io.
  static Result<std::shared_ptr<TlsKeyLog>> open(const std::string& path);
  ~TlsKeyLog();
  TlsKeyLog(const TlsKeyLog&) = delete;
  TlsKeyLog& operator=(const TlsKeyLog&) = delete;

  void line(const char* text);  // a line that cannot be written is missing

 private:
  explicit TlsKeyLog(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace ztape::net
