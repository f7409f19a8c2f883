#include "capture-format/run_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include "capture-format/reader.h"

namespace ztape {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".ztape";
constexpr std::size_t kDigits = 6;

std::optional<uint64_t> number_of(std::string_view digits) {
  uint64_t number = 0;
  if (digits.size() < kDigits || !std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// Of a file with a number. nullopt: it has none.
std::optional<std::pair<RunName, uint64_t>> parts_of(const std::string& path) {
  const auto name = run_name(path);  // "a/sync.000007." and ".ztape"
  const auto digits_end = name.before.size() - 1;
  const auto dot = name.before.find_last_of("./", digits_end - 1);
  if (dot == std::string::npos || name.before[dot] != '.') return std::nullopt;
  const auto number = number_of(std::string_view(name.before).substr(dot + 1, digits_end - dot - 1));
  if (!number) return std::nullopt;
  return std::pair(RunName{name.before.substr(0, dot + 1), name.after}, *number);
}

std::optional<capture::CaptureStart> start_of(const std::string& path) {
  auto reader = CaptureReader::open(path);
  if (!reader) return std::nullopt;
  const auto* first = (*reader)->next();
  return first && first->has_capture_start() ? std::optional(first->capture_start()) : std::nullopt;
}

}  // namespace

std::string RunName::path(uint64_t number) const {
  std::string digits = std::to_string(number);
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return before + digits + after;
}

RunName run_name(const std::string& path) {
  if (!path.ends_with(kSuffix)) return {path + ".", ""};
  return {path.substr(0, path.size() - kSuffix.size()) + ".", std::string(kSuffix)};
}

std::vector<RunFile> files_of(const RunName& name) {
  std::vector<RunFile> files;
  const auto folder = fs::path(name.before).parent_path();
  const auto before = fs::path(name.before).filename().string();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, error)) {
    const auto file = entry.path().filename().string();
    if (file.size() <= before.size() + name.after.size() || !file.starts_with(before) || !file.ends_with(name.after)) {
      continue;
    }
    const auto digits = std::string_view(file).substr(before.size(), file.size() - before.size() - name.after.size());
    if (const auto number = number_of(digits)) files.push_back({*number, (folder / file).string()});
  }
  std::ranges::sort(files, {}, &RunFile::number);
  return files;
}

std::optional<NextOfRun> next_of_run(const std::string& path, const capture::CaptureStart& start) {
  if (start.run().empty()) return std::nullopt;
  const auto here = parts_of(path);
  if (!here) return std::nullopt;
  for (const auto& file : files_of(here->first)) {
    if (file.number <= here->second) continue;
    const auto other = start_of(file.path);
    if (!other || other->run() != start.run() || other->file_number() <= start.file_number()) continue;
    return NextOfRun{file.path, other->file_number() - start.file_number() - 1};
  }
  return std::nullopt;
}

}  // namespace ztape
