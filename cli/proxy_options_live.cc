#include "cli/proxy_options_parts.h"

namespace ztape::cli {

void add_live_options(cxxopts::Options& options) {
  options.add_options()(
      "stats-listen",
      "metrics for Prometheus at http://ADDR/metrics; port 0 takes a free one, told in the line after "
      "the first",
      text_value(), "ADDR");
}

Result<void> read_live_options(const cxxopts::ParseResult& words, ProxyCommand& command) {
  if (!words.count("stats-listen")) return {};
  const auto& word = words["stats-listen"].as<std::string>();
  const auto listen = net::parse_url(word);
  if (!listen) return bad_option("stats-listen", listen.error());
  if (listen->tls) return bad_option("stats-listen", "'" + word + "': the metrics are served over plain http only");
  auto addresses = net::resolve(*listen, true);
  if (!addresses) return bad_option("stats-listen", addresses.error());
  command.stats_listen = std::move(*addresses);
  return {};
}

}  // namespace ztape::cli
