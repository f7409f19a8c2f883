// ztape: dispatches to a subcommand; each has a file of its own.
#include <fcntl.h>
#include <google/protobuf/stubs/common.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>
#include <uv.h>
#include <zstd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "cli/command.h"

namespace ztape::cli {

// A row a subcommand, in the order of the help text.
// clang-format off
#define ZTAPE_COMMANDS(X)                                                              \
  X(proxy,  "relay a wallet's traffic to an indexer and record it")                    \
  X(show,   "what is in a capture: a summary, its calls or its frames")                \
  X(replay, "play recorded wallets against servers and compare their answers")         \
  X(serve,  "let a capture answer as if it were the indexer")                          \
  X(verify, "prove a capture: every block's checksum, every connection's bytes")       \
  X(export, "write a capture's bytes in the raw form")                              \
  X(import, "make a capture out of the raw form")                                      \
  X(demo,   "Zaino and Ztreamer, one wallet: all of it on this machine")
// clang-format on

#define DECLARE(name, summary) int run_##name(int argc, char** argv);
ZTAPE_COMMANDS(DECLARE)
#undef DECLARE

namespace {

#define ROW(name, summary) Command{#name, summary, run_##name},
constexpr Command kCommands[] = {ZTAPE_COMMANDS(ROW)};
#undef ROW

void print_help(std::FILE* out) {
  std::fprintf(out,
               "ztape records, replays and compares the gRPC traffic of Zcash light wallets and indexers.\n\n"
               "Usage: ztape COMMAND [OPTION...]\n\nCommands:\n");
  for (const auto& command : commands()) std::fprintf(out, "  %-8s  %s\n", command.name, command.summary);
  std::fprintf(out, "\nEach has its own --help. Start here:\n  ztape demo\n");
}

void print_version() {
  std::printf("ztape %s (libuv %s, nghttp2 %s, protobuf %s, zstd %s)\n", ZTAPE_VERSION, uv_version_string(),
              nghttp2_version(0)->version_str,
              google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION).c_str(), ZSTD_versionString());
}

// Where a standard stream is closed, the next file opened would take its place, and get what is printed.
void fill_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (open("/dev/null", O_RDONLY) != fd) return;  // for reading only: a write still fails
  }
}

// A result that could not be written is none. A reader who has left, as head does, has what was wanted.
int with_stdout_written(const std::string& command, int status) {
  const bool flushed = std::fflush(stdout) == 0;
  const int number = errno;
  if (flushed && std::ferror(stdout) == 0) return status;
  pollfd reader{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR)) return status;
  return fail(command, {ErrorCode::io, "cannot be written" + (flushed ? "" : std::string(": ") + std::strerror(number)),
                        "stdout"});
}

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

int main(int argc, char** argv) {
  fill_standard_streams();
  auto logger = spdlog::stderr_color_mt("ztape");
  logger->set_pattern("%^%l%$: %v");
  spdlog::set_default_logger(std::move(logger));
  if (argc < 2) {
    print_help(stderr);
    return kUsage;
  }
  const std::string word = argv[1];
  if (word == "--help" || word == "-h" || word == "help") {
    print_help(stdout);
    return kDone;
  }
  if (word == "--version") {
    print_version();
    return kDone;
  }
  for (const auto& command : commands()) {
    if (word == command.name) return with_stdout_written(word, command.run(argc - 1, argv + 1));
  }
  std::fprintf(stderr, "ztape: no command '%s' (see ztape --help)\n", word.c_str());
  return kUsage;
}

}  // namespace ztape::cli

int main(int argc, char** argv) {
  return ztape::cli::main(argc, argv);
}
