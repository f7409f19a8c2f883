#include <charconv>
#include <ctime>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "capture-format/writer.h"
#include "cli/proxy_options_parts.h"
#include "cli/units.h"

namespace ztape::cli {
namespace {

constexpr uint64_t kSmallestFileBytes = 64 * 1024;
constexpr uint64_t kSmallestQueueBytes = 1024 * 1024;

// In the working directory: `stem` with something behind it, as .ztape or the number of a rotated file.
bool is_taken(const std::string& stem) {
  std::error_code error;  // a directory that cannot be read is noticed when the file is made
  for (const auto& entry : std::filesystem::directory_iterator(".", error)) {
    if (entry.path().filename().string().starts_with(stem + ".")) return true;
  }
  return false;
}

// Who is started again within the second gets the next one's name: a service must not fail for that, and by name stays
// by time.
std::string default_file() {
  for (std::time_t time = std::time(nullptr);; ++time) {
    std::tm utc{};
    gmtime_r(&time, &utc);
    char stem[64];
    std::strftime(stem, sizeof(stem), "ztape-%Y%m%dT%H%M%SZ", &utc);
    if (!is_taken(stem)) return std::string(stem) + ".ztape";
  }
}

Result<proxy::Compression> read_compression(const std::string& word) {
  if (word == "auto") return proxy::Compression{};
  if (word == "none") return proxy::Compression{.automatic = false, .level = kStoredLevel};
  int level = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), level);
  if (error != std::errc() || end != word.data() + word.size() || level < 1 || level > 19) {
    return bad_option("compression", "'" + word + "' is not none, auto or 1 to 19");
  }
  return proxy::Compression{.automatic = false, .level = level};
}

Result<void> read_rotation(const cxxopts::ParseResult& words, proxy::RecorderOptions& recorder) {
  if (!words.count("rotate-bytes")) {
    if (words.count("keep")) return bad_option("keep", "it needs --rotate-bytes: without that there is one file");
    return {};
  }
  const auto size = parse_bytes(words["rotate-bytes"].as<std::string>());
  if (!size) return bad_option("rotate-bytes", size.error());
  if (*size < kSmallestFileBytes) return bad_option("rotate-bytes", "must be at least 64K");
  if (recorder.path == "-") return bad_option("rotate-bytes", "stdout is one file: name one with -w");
  recorder.rotate_bytes = *size;
  if (!words.count("keep")) return {};
  recorder.keep = words["keep"].as<uint32_t>();
  if (recorder.keep == 0) return bad_option("keep", "must be at least 1");
  return {};
}

}  // namespace

void add_recorder_options(cxxopts::Options& options) {
  options.add_options()("w,write", "the capture (default ztape-<UTC time>.ztape), - for stdout", text_value(), "FILE")(
      "force", "overwrite the capture")(
      "rotate-bytes", "go on in a new file at this size: FILE.000001.ztape, FILE.000002.ztape, ...", text_value(),
      "SIZE")("keep", "of those keep the newest N, delete the older ones", cxxopts::value<uint32_t>(), "N")(
      "sync", "interval: what is written is brought to the disk about every second, against a power cut",
      text_value()->default_value("none"), "none|interval")(
      "when-disk-is-slow", "leave a gap in the capture, or hold the traffic back", text_value()->default_value("gap"),
      "gap|hold")("queue-bytes", "how much may wait for the disk", text_value()->default_value("16M"), "SIZE")(
      "compression", "none, zstd's level, or by what waits", text_value()->default_value("auto"), "none|1..19|auto")(
      "note", "kept in the capture; repeatable", cxxopts::value<std::vector<std::string>>(), "KEY=VALUE");
}

Result<void> read_recorder_options(const cxxopts::ParseResult& words, ProxyCommand& command) {
  auto& recorder = command.recorder;
  recorder.path = words.count("write") ? words["write"].as<std::string>() : default_file();
  recorder.overwrite = words.count("force") > 0;
  const auto queue = parse_bytes(words["queue-bytes"].as<std::string>());
  if (!queue) return bad_option("queue-bytes", queue.error());
  if (*queue < kSmallestQueueBytes) return bad_option("queue-bytes", "must be at least 1M: one read may bring 256K");
  recorder.queue_bytes = *queue;
  if (auto read = read_rotation(words, recorder); !read) return read;
  const auto sync = choose(words, "sync", "none", "interval");
  if (!sync) return std::unexpected(sync.error());
  recorder.sync = *sync;
  const auto hold = choose(words, "when-disk-is-slow", "gap", "hold");
  if (!hold) return std::unexpected(hold.error());
  recorder.hold_when_full = *hold;
  const auto compression = read_compression(words["compression"].as<std::string>());
  if (!compression) return std::unexpected(compression.error());
  recorder.compression = *compression;
  recorder.tool_version = ZTAPE_VERSION;
  if (words.count("note")) {
    for (const auto& note : words["note"].as<std::vector<std::string>>()) {
      const auto equals = note.find('=');
      if (equals == std::string::npos || equals == 0) return bad_option("note", "'" + note + "' is not key=value");
      recorder.notes[note.substr(0, equals)] = note.substr(equals + 1);
    }
  }
  return {};
}

}  // namespace ztape::cli
