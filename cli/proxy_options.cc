#include "cli/proxy_options.h"

#include <charconv>
#include <ctime>

#include "cli/units.h"

namespace ztape::cli {
namespace {

constexpr uint64_t kSmallestQueueBytes = 1024 * 1024;

// An option's word with its name, for an error that says which one it is.
std::unexpected<Error> bad(const std::string& option, const Error& error) {
  return std::unexpected(Error{.code = error.code, .message = error.line(), .subject = "--" + option});
}

std::unexpected<Error> bad(const std::string& option, const std::string& message) {
  return std::unexpected(Error{.code = ErrorCode::usage, .message = message, .subject = "--" + option});
}

// One of two words: true for the second.
Result<bool> choose(const cxxopts::ParseResult& words, const std::string& option, const std::string& no,
                    const std::string& yes) {
  const auto& word = words[option].as<std::string>();
  if (word == no) return false;
  if (word == yes) return true;
  return bad(option, "'" + word + "' is not " + no + " or " + yes);
}

std::string default_file() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[64];
  std::strftime(text, sizeof(text), "ztape-%Y%m%dT%H%M%SZ.ztape", &utc);
  return text;
}

Result<proxy::Compression> read_compression(const std::string& word) {
  constexpr int kStoredLevel = -100;  // zstd stores what it does not find in long runs
  if (word == "auto") return proxy::Compression{};
  if (word == "none") return proxy::Compression{.automatic = false, .level = kStoredLevel};
  int level = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), level);
  if (error != std::errc() || end != word.data() + word.size() || level < 1 || level > 19) {
    return bad("compression", "'" + word + "' is not none, auto or 1 to 19");
  }
  return proxy::Compression{.automatic = false, .level = level};
}

Result<void> read_addresses(const cxxopts::ParseResult& words, proxy::ProxyOptions& proxy) {
  if (!words.count("upstream")) return bad("upstream", "the indexer is missing: --upstream http://127.0.0.1:8137");
  auto upstream = net::parse_url(words["upstream"].as<std::string>());
  if (!upstream) return bad("upstream", upstream.error());
  if (upstream->tls) return bad("upstream", upstream->text + ": TLS (https) is not there yet; use http://");
  if (upstream->port == 0) return bad("upstream", upstream->text + ": port 0 cannot be connected to");
  auto addresses = net::resolve(*upstream);
  if (!addresses) return bad("upstream", addresses.error());
  proxy.upstream = std::move(*upstream);
  proxy.upstream.text = "http://" + proxy.upstream.authority();
  proxy.upstream_addresses = std::move(*addresses);

  const auto listen = net::parse_url(words["listen"].as<std::string>());
  if (!listen) return bad("listen", listen.error());
  if (listen->tls) return bad("listen", listen->text + ": TLS (https) is not there yet");
  addresses = net::resolve(*listen, true);
  if (!addresses) return bad("listen", addresses.error());
  proxy.listen_addresses = std::move(*addresses);
  return {};
}

Result<void> read_sockets(const cxxopts::ParseResult& words, const std::string& side, net::SocketOptions& options) {
  const auto nodelay = choose(words, side + "-nodelay", "off", "on");
  if (!nodelay) return std::unexpected(nodelay.error());
  const auto quickack = choose(words, side + "-quickack", "off", "read");
  if (!quickack) return std::unexpected(quickack.error());
  options = {.nodelay = *nodelay, .quickack_every_read = *quickack};
  return {};
}

Result<void> read_recorder(const cxxopts::ParseResult& words, proxy::RecorderOptions& recorder) {
  recorder.path = words.count("write") ? words["write"].as<std::string>() : default_file();
  recorder.overwrite = words.count("force") > 0;
  const auto queue = parse_bytes(words["queue-bytes"].as<std::string>());
  if (!queue) return bad("queue-bytes", queue.error());
  if (*queue < kSmallestQueueBytes) return bad("queue-bytes", "must be at least 1M: one read may bring 256K");
  recorder.queue_bytes = *queue;
  const auto hold = choose(words, "when-disk-is-slow", "gap", "hold");
  if (!hold) return std::unexpected(hold.error());
  recorder.hold_when_full = *hold;
  const auto compression = read_compression(words["compression"].as<std::string>());
  if (!compression) return std::unexpected(compression.error());
  recorder.compression = *compression;
  recorder.tool_version = ZTAPE_VERSION;
  if (words.count("note")) {
    for (const auto& note : words["note"].as<std::vector<std::string>>()) {
      const auto equals = note.find('=');
      if (equals == std::string::npos || equals == 0) return bad("note", "'" + note + "' is not key=value");
      recorder.notes[note.substr(0, equals)] = note.substr(equals + 1);
    }
  }
  for (const char* option : {"upstream", "listen", "upstream-nodelay", "downstream-nodelay", "upstream-quickack",
                             "downstream-quickack", "when-disk-is-slow", "queue-bytes", "compression"}) {
    recorder.settings[option] = words[option].as<std::string>();
  }
  return {};
}

}  // namespace

void add_proxy_options(cxxopts::Options& options) {
  const auto text = [] { return cxxopts::value<std::string>(); };
  options.add_options()("upstream", "the indexer", text(), "URL")(
      "listen", "where the wallet connects; port 0 takes a free one", text()->default_value("127.0.0.1:9167"), "ADDR")(
      "w,write", "the capture (default ztape-<UTC time>.ztape), - for stdout", text(), "FILE")(
      "force", "overwrite the capture")(  //
      "upstream-nodelay", "TCP_NODELAY towards the indexer", text()->default_value("on"), "on|off")(
      "downstream-nodelay", "TCP_NODELAY towards the wallet", text()->default_value("on"), "on|off")(
      "upstream-quickack", "acknowledge what the indexer sends at every read", text()->default_value("off"),
      "off|read")("downstream-quickack", "acknowledge what the wallet sends at every read",
                  text()->default_value("off"), "off|read")(
      "when-disk-is-slow", "leave a gap in the capture, or hold the traffic back", text()->default_value("gap"),
      "gap|hold")("queue-bytes", "how much may wait for the disk", text()->default_value("64M"), "SIZE")(
      "compression", "none, zstd's level, or by what waits", text()->default_value("auto"), "none|1..19|auto")(
      "duration", "stop after this time", text(), "TIME")("max-connections", "turn others away",
                                                          cxxopts::value<uint32_t>(), "N")(
      "note", "kept in the capture; repeatable", cxxopts::value<std::vector<std::string>>(), "KEY=VALUE");
}

Result<ProxyCommand> read_proxy_options(const cxxopts::ParseResult& words) {
  ProxyCommand command;
  if (auto read = read_addresses(words, command.proxy); !read) return std::unexpected(read.error());
  if (auto read = read_sockets(words, "downstream", command.proxy.downstream_options); !read) {
    return std::unexpected(read.error());
  }
  if (auto read = read_sockets(words, "upstream", command.proxy.upstream_options); !read) {
    return std::unexpected(read.error());
  }
  if (auto read = read_recorder(words, command.recorder); !read) return std::unexpected(read.error());
  if (words.count("max-connections")) {
    command.proxy.max_connections = words["max-connections"].as<uint32_t>();
    if (command.proxy.max_connections == 0) return bad("max-connections", "0 would turn everyone away");
  }
  if (words.count("duration")) {
    const auto duration = parse_duration(words["duration"].as<std::string>());
    if (!duration) return bad("duration", duration.error());
    if (*duration == 0) return bad("duration", "must be above 0");
    command.duration_ns = *duration;
  }
  return command;
}

}  // namespace ztape::cli
