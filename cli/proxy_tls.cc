#include "cli/proxy_tls.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace ztape::cli {
namespace {

std::unexpected<Error> of_option(const std::string& option, const Error& error) {
  return std::unexpected(Error{.code = error.code, .message = error.line(), .subject = "--" + option});
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

Result<std::shared_ptr<ProxyTls>> ProxyTls::load(Settings settings) {
  std::shared_ptr<ProxyTls> tls(new ProxyTls(std::move(settings)));
  if (!tls->settings_.key_log.empty()) {
    auto log = net::TlsKeyLog::open(tls->settings_.key_log);
    if (!log) return of_option("tls-keylog", log.error());
    tls->key_log_ = std::move(*log);
  }
  if (tls->settings_.serves) {
    auto server = tls->load_server();
    if (!server) return std::unexpected(std::move(server.error()));
    tls->contexts_->downstream = std::move(*server);
  }
  if (tls->settings_.connects) {
    auto client = tls->load_client();
    if (!client) return std::unexpected(std::move(client.error()));
    tls->contexts_->upstream = std::move(*client);
  }
  return tls;
}

Result<std::shared_ptr<net::TlsContext>> ProxyTls::load_server() {
  net::TlsServerFiles files = settings_.server;
  if (!settings_.self_signed_directory.empty()) {
    auto made = net::self_signed_certificate(settings_.self_signed_directory, settings_.names);
    if (!made) return of_option("tls-self-signed", made.error());
    self_signed_ = std::move(*made);
    files = {.certificate = self_signed_.certificate, .key = self_signed_.key};
  }
  auto context = net::TlsContext::for_server(files, key_log_);
  if (context) return context;
  if (!settings_.self_signed_directory.empty()) return of_option("tls-self-signed", context.error());
  return of_option(context.error().subject == files.key && files.key != files.certificate ? "tls-key" : "tls-cert",
                   context.error());
}

Result<std::shared_ptr<net::TlsContext>> ProxyTls::load_client() const {
  const auto& files = settings_.client;
  auto context = net::TlsContext::for_client(files, key_log_);
  if (context) return context;
  const auto& subject = context.error().subject;
  return of_option(!files.ca.empty() && subject == files.ca ? "cacert"
                   : subject == files.key                   ? "key"
                                                            : "cert",
                   context.error());
}

void ProxyTls::tell_server() const {
  const auto& context = *contexts_->downstream;
  spdlog::info("TLS towards wallets, certificate for {}", context.summary());
  if (const auto warning = context.warning(); !warning.empty()) spdlog::warn("--tls-cert: {}", warning);
}

void ProxyTls::tell() const {
  if (settings_.serves) tell_server();
  if (settings_.serves && !settings_.self_signed_directory.empty()) {
    const auto& ca = self_signed_.ca;
    spdlog::info("its CA is {}, {}; a client trusts it by its own option (curl --cacert {}), by SSL_CERT_FILE={}, or",
                 ca, self_signed_.made ? "made now" : "made before", ca, ca);
    spdlog::info("the whole machine does: cp {} /usr/local/share/ca-certificates/ztape.crt && update-ca-certificates",
                 ca);
    spdlog::info("wallets on phones do not: docs/tls.md says what they accept");
    if (!self_signed_.missing_names.empty()) {
      spdlog::warn("--tls-self-signed: {} is not for {}; remove {} to have one made that is", self_signed_.certificate,
                   listed(self_signed_.missing_names), settings_.self_signed_directory);
    }
  }
  if (settings_.connects && settings_.client.insecure) {
    spdlog::warn("--insecure: whoever answers at the upstream's address is taken for it");
  }
  if (!settings_.key_log.empty()) {
    spdlog::warn("--tls-keylog: who has {} can read this proxy's TLS traffic from a packet capture", settings_.key_log);
  }
}

void ProxyTls::reload() {
  if (settings_.serves) {
    if (auto server = load_server()) {
      contexts_->downstream = std::move(*server);
      spdlog::info("SIGHUP: new connections get the certificate as it is now");
      tell_server();
    } else {
      spdlog::error("SIGHUP: {}; the certificate in use stays", server.error().line());
    }
  }
  if (settings_.connects) {
    if (auto client = load_client()) {
      contexts_->upstream = std::move(*client);
      spdlog::info("SIGHUP: new connections to https upstreams use the CAs and the certificate as they are now");
    } else {
      spdlog::error("SIGHUP: {}; what is in use towards the upstream stays", client.error().line());
    }
  }
}

}  // namespace ztape::cli
