#include <vector>

#include "cli/proxy_options_parts.h"

namespace ztape::cli {
namespace {

Result<std::shared_ptr<const proxy::Destination>> read_upstream(const std::string& option, const std::string& word) {
  auto url = net::parse_url(word);
  if (!url) return bad_option(option, url.error());
  if (url->port == 0) return bad_option(option, url->text + ": port 0 cannot be connected to");
  auto addresses = net::resolve(*url);
  if (!addresses) return bad_option(option, addresses.error());
  url->text = (url->tls ? "https://" : "http://") + url->authority();
  const auto name = url->host.empty() ? "localhost" : url->host;
  return std::make_shared<const proxy::Destination>(
      proxy::Destination{.url = std::move(*url), .addresses = std::move(*addresses), .server_name = name});
}

Result<void> read_listen(const std::string& option, const std::string& word, proxy::Route& route) {
  const auto listen = net::parse_url(word);
  if (!listen) return bad_option(option, listen.error());
  route.tls = listen->tls;
  route.plaintext = word.starts_with("http://");
  auto addresses = net::resolve(*listen, true);
  if (!addresses) return bad_option(option, addresses.error());
  route.listen_addresses = std::move(*addresses);
  return {};
}

Result<proxy::Route> read_route(const std::string& listen_option, const std::string& listen,
                                const std::string& upstream_option, const std::string& upstream) {
  proxy::Route route;
  auto destination = read_upstream(upstream_option, upstream);
  if (!destination) return std::unexpected(std::move(destination.error()));
  route.destination = std::move(*destination);
  if (auto read = read_listen(listen_option, listen, route); !read) return std::unexpected(std::move(read.error()));
  return route;
}

// --upstream, with or without --listen.
Result<void> read_single_route(const cxxopts::ParseResult& words, ProxyCommand& command) {
  if (!words.count("upstream")) {
    return bad_option("upstream", "the indexer is missing: --upstream http://127.0.0.1:8137");
  }
  const auto& upstream = words["upstream"].as<std::string>();
  const auto& listen = words["listen"].as<std::string>();
  auto route = read_route("listen", listen, "upstream", upstream);
  if (!route) return std::unexpected(std::move(route.error()));
  command.proxy.intake.routes.push_back(std::move(*route));
  command.recorder.settings["upstream"] = upstream;
  command.recorder.settings["listen"] = listen;
  return {};
}

// --transparent, with or without --listen.
Result<void> read_transparent(const cxxopts::ParseResult& words, ProxyCommand& command) {
  for (const char* other : {"upstream", "route"}) {
    if (words.count(other)) {
      return bad_option("transparent",
                        "each connection brings its own destination: leave --" + std::string(other) + " out");
    }
  }
  const auto& listen = words["listen"].as<std::string>();
  proxy::Route route;
  if (auto read = read_listen("listen", listen, route); !read) return read;
  command.proxy.intake.routes.push_back(std::move(route));
  command.proxy.intake.transparent = true;
  command.recorder.settings["listen"] = listen;
  command.recorder.settings["transparent"] = "on";
  return {};
}

Result<void> read_routes(const cxxopts::ParseResult& words, ProxyCommand& command) {
  for (const char* other : {"upstream", "listen"}) {
    if (words.count(other)) {
      return bad_option("route",
                        "names both ends itself: leave --" + std::string(other) + " out, or write it as a --route");
    }
  }
  for (const auto& word : words["route"].as<std::vector<std::string>>()) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return bad_option("route", "'" + word + "' is not LISTEN=URL: --route 127.0.0.1:9167=http://127.0.0.1:8137");
    }
    auto route = read_route("route", word.substr(0, equals), "route", word.substr(equals + 1));
    if (!route) return std::unexpected(std::move(route.error()));
    command.proxy.intake.routes.push_back(std::move(*route));
    command.recorder.settings["route " + std::to_string(command.proxy.intake.routes.size())] = word;
  }
  return {};
}

Result<void> read_where(const cxxopts::ParseResult& words, ProxyCommand& command) {
  if (words.count("transparent")) return read_transparent(words, command);
  return words.count("route") ? read_routes(words, command) : read_single_route(words, command);
}

}  // namespace

void add_intake_options(cxxopts::Options& options) {
  auto add = options.add_options();
  add("upstream", "the indexer", text_value(), "URL");
  add("listen", "where the wallet connects; port 0 takes a free one", text_value()->default_value("127.0.0.1:9167"),
      "ADDR");
  add("route",
      "instead of both, and repeatable: several hops, one capture, one clock (wallet to indexer, indexer to node)",
      cxxopts::value<std::vector<std::string>>(), "LISTEN=URL");
  add("transparent",
      "instead of an upstream: a rule of the firewall (REDIRECT or TPROXY) sends the connections here, and each goes "
      "on to where it wanted to go");
  add("proxy-protocol", "read the wallet's address from the PROXY header of a balancer, version 1 or 2");
  add("max-connections", "turn others away", cxxopts::value<uint32_t>(), "N");
}

Result<void> read_intake_options(const cxxopts::ParseResult& words, ProxyCommand& command) {
  if (auto read = read_where(words, command); !read) return read;
  command.proxy.intake.proxy_protocol = words.count("proxy-protocol") > 0;
  command.recorder.settings["proxy-protocol"] = command.proxy.intake.proxy_protocol ? "on" : "off";
  if (words.count("max-connections")) {
    command.proxy.max_connections = words["max-connections"].as<uint32_t>();
    if (command.proxy.max_connections == 0) return bad_option("max-connections", "0 would turn everyone away");
  }
  return {};
}

}  // namespace ztape::cli
