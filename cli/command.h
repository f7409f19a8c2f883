// What every subcommand shares: exit statuses, the options all of them have, one line for an error.
#pragma once

#include <cxxopts.hpp>
#include <expected>
#include <span>
#include <string>

#include "proto/error.h"

namespace ztape::cli {

// docs/cli.md, "Exit status". When several hold: usage, then incomplete, then different.
enum ExitStatus { kDone = 0, kDifferent = 1, kUsage = 2, kIncomplete = 3 };

int exit_status(const Error& error);

// "ztape show: sync.ztape: not a capture" on stderr; returns the status.
int fail(const std::string& command, const Error& error);

struct Command {
  const char* name;
  const char* summary;  // one line of `ztape --help`
  int (*run)(int argc, char** argv);
};

std::span<const Command> commands();

// Parses the words of a subcommand. Adds -h/--help, -v/--verbose and -q/--quiet, and sets the log level. `example`
// stands under the help text. The returned int is the exit status to end with: after --help (0), or after a usage
// error, which was printed (2).
std::expected<cxxopts::ParseResult, int> parse(cxxopts::Options& options, int argc, char** argv,
                                               const std::string& example);

}  // namespace ztape::cli
