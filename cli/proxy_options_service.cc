#include "cli/proxy_options_parts.h"
#include "cli/units.h"

namespace ztape::cli {
namespace {

// Left as it is where the option was not given.
Result<void> read_time(const cxxopts::ParseResult& words, const std::string& option, int64_t& time_ns) {
  if (!words.count(option)) return {};
  const auto time = parse_duration(words[option].as<std::string>());
  if (!time) return bad_option(option, time.error());
  if (*time == 0) return bad_option(option, "must be above 0");
  time_ns = *time;
  return {};
}

}  // namespace

void add_service_options(cxxopts::Options& options) {
  auto add = options.add_options();
  add("duration", "stop after this time", text_value(), "TIME");
  add("drain", "when told to stop: take no more connections, and let those there are end for up to this time",
      text_value(), "TIME");
  add("user", "go on as this user once the ports and the capture are open", text_value(), "NAME");
}

Result<void> read_service_options(const cxxopts::ParseResult& words, ProxyCommand& command) {
  if (auto read = read_time(words, "duration", command.times.duration_ns); !read) return read;
  if (auto read = read_time(words, "drain", command.times.drain_ns); !read) return read;
  if (words.count("user")) {
    auto account = find_account(words["user"].as<std::string>());
    if (!account) return std::unexpected(std::move(account.error()));
    command.account = std::move(*account);
  }
  return {};
}

Result<void> use_passed_sockets(const std::vector<int>& sockets, ProxyCommand& command) {
  auto& routes = command.proxy.intake.routes;
  if (sockets.size() != routes.size()) {
    return std::unexpected(Error{.code = ErrorCode::usage,
                                 .message = std::to_string(sockets.size()) + " sockets were passed on for " +
                                            std::to_string(routes.size()) + " routes; each needs one",
                                 .subject = "LISTEN_FDS"});
  }
  for (std::size_t i = 0; i < routes.size(); ++i) routes[i].passed_socket = sockets[i];
  return {};
}

}  // namespace ztape::cli
