#include "cli/proxy_options.h"

#include "cli/proxy_options_parts.h"

namespace ztape::cli {
namespace {

struct Subject {
  void (*add)(cxxopts::Options& options);
  Result<void> (*read)(const cxxopts::ParseResult& words, ProxyCommand& command);
};

// In the order of the help text.
constexpr Subject kSubjects[] = {
    {add_intake_options, read_intake_options},     {add_tls_options, read_tls_options},
    {add_recorder_options, read_recorder_options}, {add_socket_options, read_socket_options},
    {add_live_options, read_live_options},         {add_service_options, read_service_options},
};

// What a reader of the capture has to know of how it was made, besides where its connections came in and went to.
constexpr const char* kKeptInTheCapture[] = {
    "upstream-nodelay",  "downstream-nodelay", "upstream-quickack", "downstream-quickack",
    "when-disk-is-slow", "queue-bytes",        "compression",       "sync"};

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
  for (const auto& subject : kSubjects) subject.add(options);
}

Result<ProxyCommand> read_proxy_options(const cxxopts::ParseResult& words) {
  ProxyCommand command;
  for (const auto& subject : kSubjects) {
    if (auto done = subject.read(words, command); !done) return std::unexpected(std::move(done.error()));
  }
  for (const std::string option : kKeptInTheCapture) {
    command.recorder.settings[option] = words[option].as<std::string>();
  }
  return command;
}

}  // namespace ztape::cli
