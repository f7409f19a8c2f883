// ztape export: a capture's bytes in the raw form.
#include <cstdio>

#include "capture-format/raw_form.h"
#include "capture-format/reader.h"
#include "cli/command.h"

namespace ztape::cli {
namespace {

Result<void> write_raw(CaptureReader& reader, RawWriter& writer) {
  while (const auto* record = reader.next()) {
    if (auto written = writer.append(*record); !written) return written;
  }
  return writer.finish();
}

}  // namespace

int run_export(int argc, char** argv) {
  cxxopts::Options options(
      "ztape export",
      "Writes a capture's connections in the raw form: the bytes of each direction and the reads that brought them.");
  options.add_options()("r,read", "the capture, - for stdin", cxxopts::value<std::string>(), "FILE")(
      "format", "raw", cxxopts::value<std::string>()->default_value("raw"), "FORM")(
      "o,output", "the folder to write to; it is made when missing", cxxopts::value<std::string>(), "PATH")(
      "force", "overwrite existing files");
  const auto parsed = parse(options, argc, argv, "ztape export -r sync.ztape --format raw -o sync.raw");
  if (!parsed) return parsed.error();
  if (!parsed->count("read")) return fail("export", {ErrorCode::usage, "which capture? -r FILE names it", ""});
  if (!parsed->count("output")) return fail("export", {ErrorCode::usage, "where to? -o PATH names the folder", ""});
  if (const auto format = (*parsed)["format"].as<std::string>(); format != "raw") {
    return fail("export", {ErrorCode::usage, "--format '" + format + "' is not known; there is raw", ""});
  }
  auto reader = CaptureReader::open((*parsed)["read"].as<std::string>());
  if (!reader) return fail("export", reader.error());
  RawWriter writer((*parsed)["output"].as<std::string>(), parsed->count("force") > 0);
  if (auto written = write_raw(**reader, writer); !written) return fail("export", written.error());
  std::printf("%llu connections written to %s\n", static_cast<unsigned long long>(writer.connections()),
              (*parsed)["output"].as<std::string>().c_str());
  int status = kDone;
  for (const auto& damage : (*reader)->damage()) {
    const int of_this = fail("export", {damage.code, damage.message, (*reader)->name(), damage.offset});
    if (of_this == kIncomplete || status == kDone) status = of_this;
  }
  for (const auto& line : writer.beginnings()) status = fail("export", {ErrorCode::torn, line, (*reader)->name()});
  for (const auto& hole : writer.holes()) status = fail("export", {ErrorCode::torn, hole, (*reader)->name()});
  return status;
}

}  // namespace ztape::cli
