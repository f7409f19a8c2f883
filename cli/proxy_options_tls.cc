#include <algorithm>

#include "cli/proxy_options_parts.h"
#include "cli/proxy_tls.h"
#include "net/self_signed.h"

namespace ztape::cli {
namespace {

std::string word_of(const cxxopts::ParseResult& words, const std::string& option) {
  return words.count(option) ? words[option].as<std::string>() : "";
}

// Both or neither.
Result<void> need_both(const cxxopts::ParseResult& words, const std::string& one, const std::string& other) {
  if (words.count(one) && !words.count(other)) return bad_option(one, "needs --" + other);
  if (words.count(other) && !words.count(one)) return bad_option(other, "needs --" + one);
  return {};
}

// The host of an address that is listened on, where it is one that a client may write into a URL.
std::string host_of(const net::SocketAddress& address) {
  const auto host = address.host();
  return host == "::" || host == "0.0.0.0" ? "" : host;
}

Result<void> read_server(const cxxopts::ParseResult& words, ProxyCommand& command, ProxyTls::Settings& settings) {
  if (auto both = need_both(words, "tls-cert", "tls-key"); !both) return both;
  settings.server = {.certificate = word_of(words, "tls-cert"), .key = word_of(words, "tls-key")};
  settings.self_signed_directory = word_of(words, "tls-self-signed");
  const bool self_signed = words.count("tls-self-signed") > 0;
  if (self_signed && words.count("tls-cert")) {
    return bad_option("tls-self-signed", "and --tls-cert are two certificates for one listener; leave one out");
  }
  if (self_signed && settings.self_signed_directory.empty()) return bad_option("tls-self-signed", "names no directory");
  const bool certificate = self_signed || words.count("tls-cert") > 0;
  settings.names = net::names_of_this_machine();
  for (auto& route : command.proxy.intake.routes) {
    if (route.tls && !certificate) {
      return bad_option(words.count("route") ? "route" : "listen",
                        "https:// needs a certificate: --tls-cert and --tls-key, or --tls-self-signed");
    }
    route.tls = certificate && !route.plaintext;
    if (!route.tls) continue;
    settings.serves = true;
    for (const auto& address : route.listen_addresses) {
      const auto host = host_of(address);
      if (!host.empty() && std::ranges::find(settings.names, host) == settings.names.end()) {
        settings.names.insert(settings.names.begin(), host);
      }
    }
  }
  if (certificate && !settings.serves) {
    return bad_option(self_signed ? "tls-self-signed" : "tls-cert", "serves nobody: every listener is http://");
  }
  return {};
}

Result<void> read_client(const cxxopts::ParseResult& words, ProxyCommand& command, ProxyTls::Settings& settings) {
  if (auto both = need_both(words, "cert", "key"); !both) return both;
  settings.client = {.ca = word_of(words, "cacert"),
                     .certificate = word_of(words, "cert"),
                     .key = word_of(words, "key"),
                     .insecure = words.count("insecure") > 0};
  if (command.proxy.intake.transparent && words.count("authority")) {
    return bad_option("authority",
                      "is for one upstream; in transparent mode the certificate has to be for the name that the wallet "
                      "asks for: leave it out");
  }
  for (auto& route : command.proxy.intake.routes) {
    // In transparent mode, who wants TLS of us wanted it of the destination.
    settings.connects = settings.connects || (!route.destination && route.tls);
    if (!route.destination || !route.destination->url.tls) continue;
    settings.connects = true;
    if (!words.count("authority")) continue;
    // NAME or NAME:PORT; the certificate knows no port.
    const auto authority = word_of(words, "authority");
    const auto parsed = net::parse_url(authority.find(':') == std::string::npos ? authority + ":443" : authority);
    if (!parsed || parsed->host.empty()) {
      return bad_option("authority", "'" + authority + "' is not a name, with or without a port");
    }
    auto named = std::make_shared<proxy::Destination>(*route.destination);
    named->server_name = parsed->host;
    route.destination = std::move(named);
  }
  if (settings.connects) return {};
  for (const char* option : {"cacert", "cert", "insecure", "authority"}) {
    if (words.count(option)) return bad_option(option, "is for an https:// upstream, and there is none");
  }
  return {};
}

}  // namespace

void add_tls_options(cxxopts::Options& options) {
  options.add_options()("tls-cert", "serve TLS: the certificate with its chain, PEM; SIGHUP reads it again",
                        text_value(), "FILE")("tls-key", "its key, PEM", text_value(), "FILE")(
      "tls-self-signed", "serve TLS with a CA and a certificate for this machine, made in DIR once", text_value(),
      "DIR")("tls-keylog", "append the secrets of all TLS connections, for Wireshark", text_value(), "FILE")(
      "cacert", "trust these CAs for an https upstream, not the system's", text_value(), "FILE")(
      "k,insecure", "take any certificate of an https upstream")(
      "cert", "client certificate for an https upstream", text_value(), "FILE")("key", "its key", text_value(), "FILE")(
      "authority", "whom an https upstream's certificate must be for, and the SNI (default: the URL's host)",
      text_value(), "NAME");
}

Result<void> read_tls_options(const cxxopts::ParseResult& words, ProxyCommand& command) {
  ProxyTls::Settings settings;
  if (auto read = read_server(words, command, settings); !read) return read;
  if (auto read = read_client(words, command, settings); !read) return read;
  settings.key_log = word_of(words, "tls-keylog");
  const bool needed = settings.serves || settings.connects;
  if (!needed && words.count("tls-keylog")) return bad_option("tls-keylog", "there is no TLS on any side");
  for (const char* option : {"tls-cert", "tls-self-signed", "cacert", "authority"}) {
    if (words.count(option)) command.recorder.settings[option] = word_of(words, option);
  }
  if (settings.client.insecure) command.recorder.settings["insecure"] = "true";
  if (!needed) return {};
  auto tls = ProxyTls::load(std::move(settings));
  if (!tls) return std::unexpected(std::move(tls.error()));
  command.tls = std::move(*tls);
  command.proxy.tls = command.tls->contexts();
  return {};
}

}  // namespace ztape::cli
