#include "cli/proxy_options_parts.h"

namespace ztape::cli {
namespace {

Result<void> read_side(const cxxopts::ParseResult& words, const std::string& side, net::SocketOptions& options) {
  const auto nodelay = choose(words, side + "-nodelay", "off", "on");
  if (!nodelay) return std::unexpected(nodelay.error());
  const auto quickack = choose(words, side + "-quickack", "off", "read");
  if (!quickack) return std::unexpected(quickack.error());
  options = {.nodelay = *nodelay, .quickack_every_read = *quickack};
  return {};
}

}  // namespace

void add_socket_options(cxxopts::Options& options) {
  options.add_options()("upstream-nodelay", "TCP_NODELAY towards the indexer", text_value()->default_value("on"),
                        "on|off")("downstream-nodelay", "TCP_NODELAY towards the wallet",
                                  text_value()->default_value("on"), "on|off")(
      "upstream-quickack", "acknowledge what the indexer sends at every read", text_value()->default_value("off"),
      "off|read")("downstream-quickack", "acknowledge what the wallet sends at every read",
                  text_value()->default_value("off"), "off|read");
}

Result<void> read_socket_options(const cxxopts::ParseResult& words, ProxyCommand& command) {
  if (auto read = read_side(words, "downstream", command.proxy.downstream_options); !read) return read;
  return read_side(words, "upstream", command.proxy.upstream_options);
}

}  // namespace ztape::cli
