#include "cli/command.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>

namespace ztape::cli {

int exit_status(const Error& error) {
  switch (error.code) {
    case ErrorCode::corrupt: return kDifferent;
    case ErrorCode::torn:
    case ErrorCode::unreachable:
    case ErrorCode::protocol: return kIncomplete;
    case ErrorCode::usage:
    case ErrorCode::not_a_capture:
    case ErrorCode::unsupported_version:
    case ErrorCode::over_limit:
    case ErrorCode::io:
    case ErrorCode::no_room:
    case ErrorCode::address: return kUsage;
  }
  return kUsage;
}

int fail(const std::string& command, const Error& error) {
  std::fprintf(stderr, "ztape %s: %s\n", command.c_str(), error.line().c_str());
  return exit_status(error);
}

namespace {

// A switch with a value, as --force=false: cxxopts takes it, and whoever asks only whether it is there, for set.
std::string switch_with_value(const cxxopts::Options& options, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto equals = word.find('=');
    if (!word.starts_with("--") || equals == std::string::npos) continue;
    const auto name = word.substr(2, equals - 2);
    for (const auto& group : options.groups()) {
      for (const auto& option : options.group_help(group).options) {
        if (option.is_boolean && std::ranges::find(option.l, name) != option.l.end()) return name;
      }
    }
  }
  return "";
}

// On one line, "Usage: ztape show [OPTION...]", as the other tools have it and those that read help texts look for.
std::string help_text(const cxxopts::Options& options) {
  auto text = options.help();
  const std::string two_lines = "\nUsage:\n  ";
  if (const auto at = text.find(two_lines); at != std::string::npos) text.replace(at, two_lines.size(), "\n\nUsage: ");
  return text;
}

// The option before the value that cxxopts could not read: its own message names the value only.
std::string option_of_value(const std::string& message, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const auto value = equals == std::string::npos ? word : word.substr(equals + 1);
    if (message.find("\u2018" + value + "\u2019") == std::string::npos) continue;
    if (equals != std::string::npos) return word.substr(0, equals) + ": ";
    if (i > 1 && argv[i - 1][0] == '-') return std::string(argv[i - 1]) + ": ";
  }
  return "";
}

}  // namespace

std::expected<cxxopts::ParseResult, int> parse(cxxopts::Options& options, int argc, char** argv,
                                               const std::string& example) {
  options.add_options()("h,help", "this text")("v,verbose", "log more")("q,quiet", "log errors only");
  const auto refuse = [&](const std::string& why) {
    std::fprintf(stderr, "%s: %s (see --help)\n", options.program().c_str(), why.c_str());
    return std::unexpected(kUsage);
  };
  if (const auto name = switch_with_value(options, argc, argv); !name.empty()) {
    return refuse("--" + name + " takes no value");
  }
  try {
    auto parsed = options.parse(argc, argv);
    if (parsed.count("help")) {
      std::printf("%s\nExample:\n  %s\n", help_text(options).c_str(), example.c_str());
      return std::unexpected(kDone);
    }
    if (!parsed.unmatched().empty()) return refuse("unexpected argument '" + parsed.unmatched().front() + "'");
    for (const auto& argument : parsed.arguments()) {
      const auto& key = argument.key();
      const bool is_file = key == "read" || key == "write" || key == "output";
      if (is_file && argument.value().empty()) return refuse("--" + key + ": the name is empty");
    }
    if (parsed.count("verbose")) spdlog::set_level(spdlog::level::debug);
    if (parsed.count("quiet")) spdlog::set_level(spdlog::level::err);
    return parsed;
  } catch (const cxxopts::exceptions::incorrect_argument_type& error) {
    return refuse(option_of_value(error.what(), argc, argv) + error.what());
  } catch (const cxxopts::exceptions::exception& error) {
    return refuse(error.what());
  }
}

}  // namespace ztape::cli
