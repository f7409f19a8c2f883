// Why a TLS connection failed, in words for whoever has to do something about it. For net/'s .cc files only.
#pragma once

#include <openssl/ssl.h>

#include <string>
#include <vector>

namespace ztape::net {

struct TlsFailure {
  const SSL* ssl = nullptr;
  int ssl_error = 0;  // SSL_get_error()'s
  bool server = false;
  bool handshake = true;
  std::string first_bytes;              // that the peer sent
  std::string server_name;              // whom a client wants to reach
  std::vector<std::string> peer_names;  // whom the server's certificate is for, where it did not verify
  std::vector<std::string> their_alpn;
  std::vector<std::string> our_alpn;
};

// Takes the reason out of OpenSSL's error queue.
std::string failure_text(const TlsFailure& failure);

// "ok", or what is wrong with the peer's certificate; `server_name` is whom it has to be for, `peer_names` whom it is
// for.
std::string verification_text(const SSL* ssl, const std::string& server_name,
                              const std::vector<std::string>& peer_names);

}  // namespace ztape::net
