// peer_client: a light-wallet client by grpc++ that plays one scenario and prints what it saw.
#include <cstdio>
#include <string>

#include "tests/peer/scenario.h"

namespace ztape::peer {
namespace {

#define ZTAPE_ROW(name, summary) {#name, summary, run_##name},
constexpr Scenario kScenarios[] = {ZTAPE_PEER_SCENARIOS(ZTAPE_ROW)};
#undef ZTAPE_ROW

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--list") {
    for (const auto& scenario : kScenarios) std::printf("%-15s %s\n", scenario.name, scenario.summary);
    return 0;
  }
  for (const auto& scenario : kScenarios) {
    if (argc != 3 || std::string(argv[2]) != scenario.name) continue;
    Transcript transcript;
    scenario.run(argv[1], transcript);
    std::fputs(transcript.text().c_str(), stdout);
    return 0;
  }
  std::fprintf(stderr, "Usage: peer_client ADDRESS SCENARIO, or peer_client --list\n");
  return 2;
}

}  // namespace
}  // namespace ztape::peer

int main(int argc, char** argv) {
  return ztape::peer::main(argc, argv);
}
