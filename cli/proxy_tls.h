// The TLS side of a running `ztape proxy`: the files it was started with, loaded, told about, loaded again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/self_signed.h"
#include "net/tls_context.h"
#include "proto/error.h"
#include "proxy/proxy_options.h"

namespace ztape::cli {

class ProxyTls {
 public:
  struct Settings {
    bool serves = false;  // TLS towards wallets
    net::TlsServerFiles server;
    std::string self_signed_directory;  // instead of `server`; "" for none
    std::vector<std::string> names;     // a self-signed certificate's
    bool connects = false;              // to https upstreams
    net::TlsClientFiles client;
    std::string key_log;  // "" for none
  };

  // Errors: usage and io; the subject is the option with the file that is wrong.
  static Result<std::shared_ptr<ProxyTls>> load(Settings settings);

  // What new connections use. reload() changes what it points to.
  [[nodiscard]] std::shared_ptr<const proxy::TlsContexts> contexts() const { return contexts_; }

  // To the log: what is served, and what a user has to know of it.
  void tell() const;
  // Reads the files anew. Of a side whose files are bad the old ones stay in use, and the log says so. The loop's
  // thread.
  void reload();

 private:
  explicit ProxyTls(Settings settings) : settings_(std::move(settings)) {}
  Result<std::shared_ptr<net::TlsContext>> load_server();
  Result<std::shared_ptr<net::TlsContext>> load_client() const;
  void tell_server() const;

  const Settings settings_;
  std::shared_ptr<net::TlsKeyLog> key_log_;
  net::SelfSigned self_signed_;
  std::shared_ptr<proxy::TlsContexts> contexts_ = std::make_shared<proxy::TlsContexts>();
};

}  // namespace ztape::cli
