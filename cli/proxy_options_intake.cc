#include "cli/proxy_options_parts.h"

namespace ztape::cli {
namespace {

Result<void> read_upstream(const cxxopts::ParseResult& words, proxy::ProxyOptions& proxy) {
  if (!words.count("upstream")) {
    return bad_option("upstream", "the indexer is missing: --upstream http://127.0.0.1:8137");
  }
  auto upstream = net::parse_url(words["upstream"].as<std::string>());
  if (!upstream) return bad_option("upstream", upstream.error());
  if (upstream->tls) return bad_option("upstream", upstream->text + ": TLS (https) is not there yet; use http://");
  if (upstream->port == 0) return bad_option("upstream", upstream->text + ": port 0 cannot be connected to");
  auto addresses = net::resolve(*upstream);
  if (!addresses) return bad_option("upstream", addresses.error());
  proxy.upstream = std::move(*upstream);
  proxy.upstream.text = "http://" + proxy.upstream.authority();
  proxy.upstream_addresses = std::move(*addresses);
  return {};
}

Result<void> read_listen(const cxxopts::ParseResult& words, proxy::ProxyOptions& proxy) {
  const auto listen = net::parse_url(words["listen"].as<std::string>());
  if (!listen) return bad_option("listen", listen.error());
  if (listen->tls) return bad_option("listen", listen->text + ": TLS (https) is not there yet");
  auto addresses = net::resolve(*listen, true);
  if (!addresses) return bad_option("listen", addresses.error());
  proxy.listen_addresses = std::move(*addresses);
  return {};
}

}  // namespace

void add_intake_options(cxxopts::Options& options) {
  options.add_options()("upstream", "the indexer", text_value(), "URL")(
      "listen", "where the wallet connects; port 0 takes a free one", text_value()->default_value("127.0.0.1:9167"),
      "ADDR")("max-connections", "turn others away", cxxopts::value<uint32_t>(), "N");
}

Result<void> read_intake_options(const cxxopts::ParseResult& words, ProxyCommand& command) {
  if (auto read = read_upstream(words, command.proxy); !read) return read;
  if (auto read = read_listen(words, command.proxy); !read) return read;
  if (words.count("max-connections")) {
    command.proxy.max_connections = words["max-connections"].as<uint32_t>();
    if (command.proxy.max_connections == 0) return bad_option("max-connections", "0 would turn everyone away");
  }
  return {};
}

}  // namespace ztape::cli
