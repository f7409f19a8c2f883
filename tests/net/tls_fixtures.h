// A CA and a server's certificate for the TLS tests, made once a run.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "net/tls_context.h"
#include "tests/support/certificates.h"
#include "tests/support/temporary_directory.h"

namespace ztape::net {

struct TlsFiles {
  test::TemporaryDirectory directory;
  test::Certificate ca = test::make_ca(directory.path(), "ca");
  test::Certificate other_ca = test::make_ca(directory.path(), "other-ca");
  test::Certificate server = test::make_certificate(directory.path(), "server", ca);

  static const TlsFiles& get() {
    static const TlsFiles files;
    return files;
  }
};

inline std::shared_ptr<TlsContext> server_context() {
  const auto& files = TlsFiles::get();
  auto context = TlsContext::for_server({.certificate = files.server.certificate, .key = files.server.key});
  EXPECT_TRUE(context) << context.error().line();
  return *context;
}

inline std::shared_ptr<TlsContext> client_context(TlsClientFiles files = {}) {
  if (files.ca.empty() && !files.insecure) files.ca = TlsFiles::get().ca.certificate;
  auto context = TlsContext::for_client(files);
  EXPECT_TRUE(context) << context.error().line();
  return *context;
}

}  // namespace ztape::net
