#include "cli/command.h"

#include <spdlog/spdlog.h>

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
    case ErrorCode::address: return kUsage;
  }
  return kUsage;
}

int fail(const std::string& command, const Error& error) {
  std::fprintf(stderr, "ztape %s: %s\n", command.c_str(), error.line().c_str());
  return exit_status(error);
}

std::expected<cxxopts::ParseResult, int> parse(cxxopts::Options& options, int argc, char** argv,
                                               const std::string& example) {
  options.add_options()("h,help", "this text")("v,verbose", "log more")("q,quiet", "log errors only");
  try {
    auto parsed = options.parse(argc, argv);
    if (parsed.count("help")) {
      std::printf("%s\nExample:\n  %s\n", options.help().c_str(), example.c_str());
      return std::unexpected(kDone);
    }
    if (!parsed.unmatched().empty()) {
      std::fprintf(stderr, "%s: unexpected argument '%s' (see --help)\n", options.program().c_str(),
                   parsed.unmatched().front().c_str());
      return std::unexpected(kUsage);
    }
    if (parsed.count("verbose")) spdlog::set_level(spdlog::level::debug);
    if (parsed.count("quiet")) spdlog::set_level(spdlog::level::err);
    return parsed;
  } catch (const cxxopts::exceptions::exception& error) {
    std::fprintf(stderr, "%s: %s (see --help)\n", options.program().c_str(), error.what());
    return std::unexpected(kUsage);
  }
}

}  // namespace ztape::cli
