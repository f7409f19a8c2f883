#include "cli/units.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace ztape::cli {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kSizes[] = {{"", 1},        {"B", 1},         {"K", 1024},        {"KiB", 1024},
                           {"M", 1048576}, {"MiB", 1048576}, {"G", 1073741824.}, {"GiB", 1073741824.}};
constexpr Unit kDurations[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};

constexpr double kLongestNs = 1e18;  // 31 years; a deadline that far from any clock still is an int64_t

std::unexpected<Error> bad(std::string_view text, const std::string& message) {
  return std::unexpected(
      Error{.code = ErrorCode::usage, .message = "'" + std::string(text) + "' " + message, .subject = ""});
}

template <std::size_t N>
Result<double> parse(std::string_view text, const Unit (&units)[N], const std::string& forms) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0) || std::isinf(number)) return bad(text, "is not " + forms);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& known : units) {
    if (unit == known.name) return number * known.factor;
  }
  if (unit.empty() && number == 0) return 0.0;
  return bad(text, "is not " + forms);
}

}  // namespace

Result<uint64_t> parse_bytes(std::string_view text) {
  const auto value = parse(text, kSizes, "a size: write 65536, 64K, 64M or 1G");
  if (!value) return std::unexpected(value.error());
  if (*value >= static_cast<double>(std::numeric_limits<int64_t>::max())) return bad(text, "is too large");
  return static_cast<uint64_t>(*value);
}

Result<int64_t> parse_duration(std::string_view text) {
  const auto value = parse(text, kDurations, "a duration: write 40ms, 2s or 10m");
  if (!value) return std::unexpected(value.error());
  if (*value > kLongestNs) return bad(text, "is too long");
  return std::llround(*value);
}

}  // namespace ztape::cli
