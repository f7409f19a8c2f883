#include "cli/units.h"

#include <charconv>
#include <cmath>
#include <ctime>
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

Result<int64_t> parse_time(std::string_view text) {
  const auto no_time = [&] {
    return bad(text, "is no time: write 2026-12-01T03:12:45Z or 2026-12-01T04:12:45.5+01:00");
  };
  std::string_view rest = text;
  // A number of exactly so many digits, and the character behind it; 0: any.
  bool good = true;
  const auto number = [&](std::size_t digits, char behind) {
    int value = 0;
    const auto word = rest.substr(0, digits);
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    good = good && word.size() == digits && error == std::errc() && end == word.data() + digits && word[0] != '-';
    rest.remove_prefix(word.size());
    if (behind == 0) return value;
    const bool separator = behind == 'T' ? rest.starts_with('T') || rest.starts_with('t') || rest.starts_with(' ')
                                         : rest.starts_with(behind);
    good = good && separator;
    if (separator) rest.remove_prefix(1);
    return value;
  };
  std::tm date{};
  date.tm_year = number(4, '-') - 1900;
  date.tm_mon = number(2, '-') - 1;
  date.tm_mday = number(2, 'T');
  date.tm_hour = number(2, ':');
  date.tm_min = number(2, ':');
  date.tm_sec = number(2, 0);
  int64_t nanoseconds = 0;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    int64_t worth = 100'000'000;
    good = good && !rest.empty() && rest[0] >= '0' && rest[0] <= '9';
    for (; !rest.empty() && rest[0] >= '0' && rest[0] <= '9'; rest.remove_prefix(1), worth /= 10) {
      nanoseconds += (rest[0] - '0') * worth;
    }
  }
  int64_t east_seconds = 0;
  if (rest == "Z" || rest == "z") {
    rest = {};
  } else if (rest.starts_with('+') || rest.starts_with('-')) {
    const int sign = rest[0] == '+' ? 1 : -1;
    rest.remove_prefix(1);
    const int hours = number(2, ':');
    east_seconds = sign * (hours * 3600 + number(2, 0) * 60);
  } else {
    good = false;
  }
  const auto in_range = [](int value, int least, int most) { return value >= least && value <= most; };
  good = good && rest.empty() && in_range(date.tm_year, 70, 300) && in_range(date.tm_mon, 0, 11) &&
         in_range(date.tm_mday, 1, 31) && in_range(date.tm_hour, 0, 23) && in_range(date.tm_min, 0, 59) &&
         in_range(date.tm_sec, 0, 60);
  if (!good) return no_time();
  const int day = date.tm_mday;
  const auto seconds = static_cast<int64_t>(timegm(&date));
  if (date.tm_mday != day && date.tm_sec != 60) return no_time();  // the 30th of February
  constexpr int64_t kSecond = 1'000'000'000;
  return (seconds - east_seconds) * kSecond + nanoseconds;
}

}  // namespace ztape::cli
