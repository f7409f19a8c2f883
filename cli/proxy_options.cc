#include "cli/proxy_options.h"

#include "cli/proxy_options_parts.h"
#include "cli/units.h"

namespace ztape::cli {
namespace {

// In the order of the help text.
constexpr void (*kAdd[])(cxxopts::Options&) = {add_intake_options, add_tls_options, add_recorder_options,
                                               add_socket_options};
constexpr Result<void> (*kRead[])(const cxxopts::ParseResult&, ProxyCommand&) = {
    read_intake_options, read_tls_options, read_socket_options, read_recorder_options};

// What a reader of the capture has to know of how it was made, besides where its connections came in and went to.
constexpr const char* kKeptInTheCapture[] = {"upstream-nodelay",    "downstream-nodelay", "upstream-quickack",
                                             "downstream-quickack", "when-disk-is-slow",  "queue-bytes",
                                             "compression"};

}  // namespace

std::unexpected<Error> bad_option(const std::string& option, const Error& error) {
  return std::unexpected(Error{.code = error.code, .message = error.line(), .subject = "--" + option});
}

std::unexpected<Error> bad_option(const std::string& option, const std::string& message) {
  return std::unexpected(Error{.code = ErrorCode::usage, .message = message, .subject = "--" + option});
}

Result<bool> choose(const cxxopts::ParseResult& words, const std::string& option, const std::string& no,
                    const std::string& yes) {
  const auto& word = words[option].as<std::string>();
  if (word == no) return false;
  if (word == yes) return true;
  return bad_option(option, "'" + word + "' is not " + no + " or " + yes);
}

void add_proxy_options(cxxopts::Options& options) {
  for (const auto add : kAdd) add(options);
  options.add_options()("duration", "stop after this time", text_value(), "TIME");
}

Result<ProxyCommand> read_proxy_options(const cxxopts::ParseResult& words) {
  ProxyCommand command;
  for (const auto read : kRead) {
    if (auto done = read(words, command); !done) return std::unexpected(std::move(done.error()));
  }
  if (words.count("duration")) {
    const auto duration = parse_duration(words["duration"].as<std::string>());
    if (!duration) return bad_option("duration", duration.error());
    if (*duration == 0) return bad_option("duration", "must be above 0");
    command.duration_ns = *duration;
  }
  for (const std::string option : kKeptInTheCapture) {
    command.recorder.settings[option] = words[option].as<std::string>();
  }
  return command;
}

}  // namespace ztape::cli
