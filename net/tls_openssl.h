// OpenSSL's types, for the .cc files of net/ that deal with TLS; nothing else includes this.
#pragma once

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

#include "net/slab.h"
#include "net/tls_context.h"

namespace ztape::net {

template <auto free_function>
struct OpensslFree {
  template <typename T>
  void operator()(T* object) const {
    free_function(object);
  }
};

using X509Pointer = std::unique_ptr<X509, OpensslFree<X509_free>>;
using KeyPointer = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using BioPointer = std::unique_ptr<BIO, OpensslFree<BIO_free>>;
using SslContextPointer = std::unique_ptr<SSL_CTX, OpensslFree<SSL_CTX_free>>;
using SslPointer = std::unique_ptr<SSL, OpensslFree<SSL_free>>;

struct TlsContext::Impl {
  SslContextPointer ssl;
  std::shared_ptr<TlsKeyLog> key_log;
  bool insecure = false;
  // Apart, because a recorder keeps plaintext for long, and ciphertext goes at once.
  ReadSlabs plaintext;
  ReadSlabs ciphertext;
};

// The oldest error of this thread's queue in OpenSSL's words, and the queue emptied; "" for none.
std::string take_openssl_reason();
// The names a certificate is for, DNS names and addresses; its common name where there are none.
std::vector<std::string> certificate_names(const X509* certificate);
// "2027-01-01" of a certificate's time, UTC.
std::string day_of(const ASN1_TIME* time);

}  // namespace ztape::net
