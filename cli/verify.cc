#include "capture-format/verify.h"

#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "report/text.h"

namespace ztape::cli {
namespace {

const char* verdict(const VerifyReport& report) {
  if (report.torn()) return report.corrupt() ? "torn and corrupt" : "torn";
  return report.corrupt() ? "corrupt" : "whole";
}

void print_text(const std::string& name, const VerifyReport& report) {
  std::printf("%s: %s\n", name.c_str(), verdict(report));
  std::printf("  blocks       %" PRIu64 "\n", report.blocks);
  std::printf("  records      %" PRIu64 "\n", report.records);
  std::printf("  connections  %" PRIu64 ": %" PRIu64 " proven by count and hash, %" PRIu64 " not closed\n",
              report.connections, report.connections_proven, report.connections_open);
  if (report.connections_continued > 0) {
    std::printf("  %" PRIu64
                " of the connections were open before this file: their earlier bytes are in earlier files of the run\n",
                report.connections_continued);
  }
  std::printf("  bytes        %" PRIu64 "\n", report.chunk_bytes);
  if (report.gaps == 0) {
    std::printf("  gaps         none\n");
  } else {
    std::printf("  gaps         %" PRIu64 ", %" PRIu64 " bytes that the recorder says it lost\n", report.gaps,
                report.gap_bytes);
  }
  if (report.connections_with_gaps > 0) {
    std::printf("  %" PRIu64
                " of the proven connections have a gap: what was recorded of them is proven, not all that crossed\n",
                report.connections_with_gaps);
  }
  for (const auto& mark : report.marks) std::printf("  mark: %s\n", report::escaped(mark, 300).c_str());
  for (const auto& damage : report.damage) {
    std::printf("  %s: offset %" PRIu64 ", %" PRIu64 " bytes: %s\n", std::string(kind(damage)).c_str(), damage.offset,
                damage.bytes, damage.message.c_str());
  }
  for (const auto& fault : report.faults) {
    std::printf("  fault: connection %" PRIu64 ": %s\n", fault.connection, fault.message.c_str());
  }
}

void print_json(const std::string& name, const VerifyReport& report) {
  nlohmann::ordered_json document = {{"capture", name},
                                     {"whole", !report.torn() && !report.corrupt()},
                                     {"torn", report.torn()},
                                     {"corrupt", report.corrupt()},
                                     {"blocks", report.blocks},
                                     {"records", report.records},
                                     {"connections", report.connections},
                                     {"connections_continued", report.connections_continued},
                                     {"connections_proven", report.connections_proven},
                                     {"connections_with_gaps", report.connections_with_gaps},
                                     {"connections_open", report.connections_open},
                                     {"chunk_bytes", report.chunk_bytes},
                                     {"gaps", report.gaps},
                                     {"gap_bytes", report.gap_bytes}};
  document["marks"] = report.marks;
  auto& damages = document["damage"] = nlohmann::ordered_json::array();
  for (const auto& damage : report.damage) {
    damages.push_back({{"kind", kind(damage)},
                       {"offset", damage.offset},
                       {"bytes", damage.bytes},
                       {"first_block", damage.first_block},
                       {"block_count", damage.block_count},
                       {"message", damage.message}});
  }
  auto& faults = document["faults"] = nlohmann::ordered_json::array();
  for (const auto& fault : report.faults) {
    faults.push_back({{"connection", fault.connection}, {"message", fault.message}});
  }
  std::printf("%s\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

}  // namespace

int run_verify(int argc, char** argv) {
  cxxopts::Options options("ztape verify",
                           "Proves a capture: every block's checksum and number, every connection's bytes.");
  options.add_options()("r,read", "the capture, - for stdin", cxxopts::value<std::string>(), "FILE")(
      "json", "one JSON document");
  const auto parsed = parse(options, argc, argv, "ztape verify -r sync.ztape");
  if (!parsed) return parsed.error();
  if (parsed->count("read") == 0) {
    std::fprintf(stderr, "ztape verify: which capture? -r FILE says it (see --help)\n");
    return kUsage;
  }
  auto reader = CaptureReader::open((*parsed)["read"].as<std::string>());
  if (!reader) return fail("verify", reader.error());
  const auto report = verify(**reader);
  if (parsed->count("json") > 0) {
    print_json((*reader)->name(), report);
  } else {
    print_text((*reader)->name(), report);
  }
  if (report.torn()) return kIncomplete;
  return report.corrupt() ? kDifferent : kDone;
}

}  // namespace ztape::cli
