#include "report/live_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ranges>
#include <utility>

#include "proto/method_table.h"
#include "report/text.h"

namespace ztape::report {
namespace {

using proxy::LiveFacts;
using proxy::MethodFigures;

enum class Style { plain, dim, bold, warning, alarm };

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kMuchLagNs = 10'000'000;
constexpr std::size_t kGap = 3;             // between the parts of a line
constexpr std::size_t kLongestFile = 40;    // a longer name loses its beginning
constexpr std::size_t kNarrowestName = 12;  // before columns are left out

std::string styled(const std::string& text, Style style, bool color) {
  if (!color || style == Style::plain || text.empty()) return text;
  static constexpr std::array kCodes{"", "2", "1", "33", "1;31"};
  return std::string("\x1b[") + kCodes[static_cast<std::size_t>(style)] + "m" + text + "\x1b[0m";
}

// "0:07", "12:34", "3:01:09", "2 d 03:01:09".
std::string uptime(int64_t ns) {
  const auto seconds = ns / kNsPerSecond;
  const auto days = seconds / 86400, hours = seconds / 3600 % 24, minutes = seconds / 60 % 60;
  std::array<char, 64> text{};
  const auto print = [&]<typename... T>(const char* format, T... values) {
    std::snprintf(text.data(), text.size(), format, static_cast<long long>(values)...);
  };
  if (days > 0) {
    print("%lld d %02lld:%02lld:%02lld", days, hours, minutes, seconds % 60);
  } else if (hours > 0) {
    print("%lld:%02lld:%02lld", hours, minutes, seconds % 60);
  } else {
    print("%lld:%02lld", minutes, seconds % 60);
  }
  return text.data();
}

std::string whole(double number) {
  return count(static_cast<uint64_t>(std::llround(number)));
}

std::string per_second(double number) {
  if (number <= 0) return "-";
  return number < 9.95
             ? std::to_string(static_cast<int>(number)) + "." + std::to_string(static_cast<int>(number * 10) % 10)
             : whole(number);
}

// A part of a line: a dim label and what it says.
struct Part {
  std::string label;
  std::string text;
  Style style = Style::plain;
  int dispensable = 0;  // the highest is left out first where the window is small; 0: never
  [[nodiscard]] std::size_t width() const { return text_width(label) + (label.empty() ? 0 : 1) + text_width(text); }
};

std::string cut(const std::string& text, std::size_t columns) {
  if (text_width(text) <= columns) return text;
  if (columns <= 2) return std::string(columns, '.');
  std::string kept;
  for (const char c : text) {
    const bool begins = (static_cast<uint8_t>(c) & 0xc0) != 0x80;
    if (begins && text_width(kept) + 2 >= columns) break;
    kept += c;
  }
  return kept + "..";
}

std::string end_of(const std::string& text, std::size_t columns) {
  if (text_width(text) <= columns) return text;
  std::size_t at = text.size();
  for (std::size_t taken = 0; at > 0 && taken + 2 < columns;) {
    --at;
    if ((static_cast<uint8_t>(text[at]) & 0xc0) != 0x80) ++taken;
  }
  return ".." + text.substr(at);
}

// The parts one after another; what does not fit into a line begins the next one.
void flow(std::vector<std::string>& lines, const std::vector<Part>& parts, const LiveTableOptions& options) {
  std::string line = " ";
  std::size_t used = 1;
  for (const auto& part : parts) {
    if (used > 1 && used + kGap + part.width() > options.columns) {
      lines.push_back(std::exchange(line, " "));
      used = 1;
    }
    if (used > 1) {
      line.append(kGap, ' ');
      used += kGap;
    }
    const std::size_t room = options.columns > used ? options.columns - used : 0;
    if (part.width() > room) {  // alone in its line, and still too wide
      line += cut(part.label + (part.label.empty() ? "" : " ") + part.text, room);
      used += room;
      continue;
    }
    if (!part.label.empty()) line += styled(part.label, Style::dim, options.color) + " ";
    line += styled(part.text, part.style, options.color);
    used += part.width();
  }
  lines.push_back(std::move(line));
}

// What is wrong comes first: the window may end after any line.
std::vector<Part> connection_parts(const LiveFacts& facts, const LiveRates& rates) {
  const auto& thread = *facts.recorder.of_thread;
  const auto& loss = facts.recorder.loss;
  std::vector<Part> parts;
  if (!thread.error.empty()) {
    parts.push_back({.label = "NOT RECORDING:", .text = escaped(thread.error, 200), .style = Style::alarm});
  }
  std::string calls = count(thread.calls);
  if (const double rate = rates.calls_a_second(); rate > 0) calls += " (" + per_second(rate) + "/s)";
  parts.push_back({.label = "up", .text = uptime(facts.uptime_ns), .style = Style::bold, .dispensable = 2});
  parts.push_back({.label = "connections",
                   .text = count(facts.open_connections) + " open, " + count(facts.counts.connections) + " in all",
                   .dispensable = 1});
  parts.push_back({.label = "calls", .text = calls, .dispensable = 1});
  Part lost{.label = "lost", .text = "nothing"};
  if (!loss.nothing()) {
    lost.text = byte_count(loss.bytes) + " in " + counted(loss.chunks, "chunk");
    if (loss.records > 0) lost.text += ", " + counted(loss.records, "record");
    lost.style = Style::alarm;
  }
  parts.push_back(std::move(lost));
  const auto& counts = facts.counts;
  const auto alarm = [&](const std::string& label, uint64_t number) {
    if (number > 0) parts.push_back({.label = label, .text = count(number), .style = Style::alarm});
  };
  alarm("not connected upstream", counts.upstream_failures);
  alarm("no TLS handshake", counts.handshake_failures);
  alarm("turned away", counts.turned_away);
  alarm("no destination", counts.intake.no_destination);
  alarm("bad PROXY header", counts.intake.bad_proxy_headers);
  return parts;
}

std::vector<Part> traffic_parts(const LiveFacts& facts, const LiveRates& rates) {
  std::vector<Part> parts;
  for (const auto direction : kDirections) {
    const auto now = static_cast<uint64_t>(rates.bytes_a_second(direction));
    parts.push_back({.label = direction == Direction::client_to_server ? "to indexer" : "to wallets",
                     .text = byte_count(now) + "/s (" + byte_count(facts.counts.bytes[index(direction)]) + ")",
                     .dispensable = direction == Direction::client_to_server ? 4 : 3});
  }
  const bool late = facts.loop_lag_now_ns > kMuchLagNs;
  parts.push_back({.label = "loop lag",
                   .text = (facts.loop_lag_now_ns > 0 ? duration(facts.loop_lag_now_ns) : std::string("-")) + " (max " +
                           duration(facts.loop_lag_max_ns) + ")",
                   .style = late ? Style::warning : Style::plain,
                   .dispensable = late ? 2 : 5});
  return parts;
}

std::vector<Part> recorder_parts(const LiveFacts& facts) {
  const auto& recorder = facts.recorder;
  const auto& thread = *recorder.of_thread;
  const bool filling = recorder.queue_bytes > recorder.queue_limit_bytes / 2;
  std::string size = byte_count(thread.file_bytes);
  if (thread.files > 1) size += " in " + counted(thread.files, "file");
  std::vector<Part> parts{{.label = end_of(escaped(thread.file), kLongestFile), .text = size, .dispensable = 4},
                          {.label = "queue",
                           .text = byte_count(recorder.queue_bytes) + " of " + byte_count(recorder.queue_limit_bytes),
                           .style = filling ? Style::warning : Style::plain,
                           .dispensable = filling ? 2 : 6},
                          {.label = "zstd", .text = std::to_string(thread.compression_level), .dispensable = 7}};
  if (facts.counts.holds > 0) {
    parts.push_back(
        {.label = "waited for the disk", .text = count(facts.counts.holds), .style = Style::warning, .dispensable = 3});
  }
  return parts;
}

// The lines above the methods: a third of the window, or three lines, unless more is wrong than that.
std::vector<std::string> head_lines(const LiveFacts& facts, const LiveRates& rates, const LiveTableOptions& options) {
  std::array groups{connection_parts(facts, rates), traffic_parts(facts, rates), recorder_parts(facts)};
  const std::size_t most = std::min(std::max<std::size_t>(3, options.rows / 3), options.rows - 1);
  for (;;) {
    std::vector<std::string> lines;
    for (const auto& group : groups) {
      if (!group.empty()) flow(lines, group, options);
    }
    if (lines.size() <= most) return lines;
    std::vector<Part>* from = nullptr;
    std::size_t least = 0;  // the last of the most dispensable ones
    for (auto& group : groups) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        if (group[i].dispensable == 0 || (from && group[i].dispensable < (*from)[least].dispensable)) continue;
        from = &group;
        least = i;
      }
    }
    if (!from) return lines;
    from->erase(from->begin() + static_cast<std::ptrdiff_t>(least));
  }
}

struct Column {
  std::string head;
  std::size_t width;
  int dispensable;  // the highest is left out first where the window is narrow
  std::string (*cell)(const MethodFigures& method, const LiveRates& rates);
  bool alarming = false;  // where it is not 0
};

// "1,204", or "1,204k" where that is too wide.
std::string compact(uint64_t number, std::size_t columns) {
  if (auto text = count(number); text.size() <= columns) return text;
  if (auto text = count(number / 1000) + "k"; text.size() <= columns) return text;
  return count(number / 1'000'000) + "M";
}

std::string or_dash(const std::optional<int64_t>& ns) {
  return ns ? milliseconds(*ns) : "-";
}

const std::vector<Column>& all_columns() {
  using M = MethodFigures;
  using R = LiveRates;
  static const std::vector<Column> kColumns{
      {"calls", 10, 0, [](const M& m, const R&) { return compact(m.calls, 10); }},
      {"/s", 6, 4, [](const M& m, const R& r) { return per_second(r.calls_a_second(m.path)); }},
      {"open", 5, 5, [](const M& m, const R&) { return compact(m.in_flight, 5); }},
      {"errors", 6, 1, [](const M& m, const R&) { return compact(m.errors, 6); }, true},
      {"cancelled", 9, 8, [](const M& m, const R&) { return compact(m.cancelled, 9); }},
      {"unseen", 7, 7, [](const M& m, const R&) { return compact(m.unseen, 7); }, true},
      {"p50 ms", 7, 2, [](const M& m, const R&) { return or_dash(m.p50_ns); }},
      {"p95 ms", 7, 3, [](const M& m, const R&) { return or_dash(m.p95_ns); }},
      {"max ms", 7, 6, [](const M& m, const R&) { return m.calls > 0 ? milliseconds(m.max_ns) : "-"; }}};
  return kColumns;
}

std::string method_name(const MethodFigures& method) {
  return method.path.empty() ? "(unreadable)" : escaped(short_name(method.path));
}

std::string padded(const std::string& text, std::size_t columns, bool right) {
  const std::string padding(columns - std::min(columns, text_width(text)), ' ');
  return right ? padding + text : text + padding;
}

// The columns that fit beside a name of that width, in their order.
std::vector<Column> columns_beside(std::size_t name_columns, std::size_t window_columns, bool some_unseen) {
  auto columns = all_columns();
  if (!some_unseen) std::erase_if(columns, [](const auto& column) { return column.head == "unseen"; });
  const auto needed = [&] {
    std::size_t sum = 1 + name_columns;
    for (const auto& column : columns) sum += 1 + column.width;
    return sum;
  };
  while (!columns.empty() && needed() > window_columns) {
    columns.erase(std::ranges::max_element(columns, {}, &Column::dispensable));
  }
  return columns;
}

// Those with the most calls where not all fit, in the order they came in: by name.
std::vector<const MethodFigures*> most_called(const std::vector<MethodFigures>& methods, std::size_t most) {
  std::vector<const MethodFigures*> chosen;
  for (const auto& method : methods) chosen.push_back(&method);
  if (chosen.size() <= most) return chosen;
  const auto busy = [](const MethodFigures* method) { return method->calls + method->in_flight; };
  std::ranges::stable_sort(chosen, std::ranges::greater{}, busy);
  chosen.resize(most);
  std::ranges::sort(chosen);  // as they stand in the vector
  return chosen;
}

void add_methods(std::vector<std::string>& lines, const LiveFacts& facts, const LiveRates& rates,
                 const LiveTableOptions& options) {
  const auto& methods = facts.recorder.of_thread->methods;
  constexpr std::size_t kBlankAndHead = 2;
  const std::size_t free_rows = options.rows > lines.size() + 1 ? options.rows - 1 - lines.size() : 0;
  if (free_rows <= kBlankAndHead) return;
  if (methods.empty()) {
    lines.emplace_back();
    lines.push_back(cut(" waiting for the first call", options.columns));
    return;
  }
  std::size_t rows = free_rows - kBlankAndHead;
  const bool all_fit = methods.size() <= rows;
  if (!all_fit) --rows;  // for the line that counts the others
  const auto shown = most_called(methods, rows);

  std::size_t longest = kNarrowestName;
  for (const auto* method : shown) longest = std::max(longest, text_width(method_name(*method)));
  const bool some_unseen = std::ranges::any_of(methods, [](const auto& method) { return method.unseen > 0; });
  // A long name gives way to the columns that a common window has.
  const auto columns = columns_beside(std::min(longest, std::size_t{24}), options.columns, some_unseen);
  std::size_t taken = 1;
  for (const auto& column : columns) taken += 1 + column.width;
  const std::size_t name_columns = std::min(longest, options.columns > taken ? options.columns - taken : 0);

  lines.emplace_back();
  std::string head = " " + padded(cut("method", name_columns), name_columns, false);
  for (const auto& column : columns) head += " " + padded(column.head, column.width, true);
  lines.push_back(styled(head, Style::bold, options.color));
  for (const auto* method : shown) {
    std::string line = " " + padded(cut(method_name(*method), name_columns), name_columns, false);
    for (const auto& column : columns) {
      const auto text = column.cell(*method, rates);
      const auto style = column.alarming && text != "0" ? Style::alarm : Style::plain;
      line += " " + styled(padded(cut(text, column.width), column.width, true), style, options.color);
    }
    lines.push_back(std::move(line));
  }
  if (all_fit) return;
  uint64_t calls_shown = 0;
  for (const auto* method : shown) calls_shown += method->calls;
  const auto others = " and " + counted(methods.size() - shown.size(), "more method") + " with " +
                      counted(facts.recorder.of_thread->calls - calls_shown, "call");
  lines.push_back(styled(cut(others, options.columns), Style::dim, options.color));
}

}  // namespace

std::vector<std::string> live_table(const proxy::LiveFacts& facts, const LiveRates& rates,
                                    const LiveTableOptions& options) {
  if (options.columns < kNarrowestName || options.rows < 2) return {};
  auto lines = head_lines(facts, rates, options);
  add_methods(lines, facts, rates, options);
  if (lines.size() >= options.rows) lines.resize(options.rows - 1);
  return lines;
}

std::size_t styled_width(const std::string& line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      i = std::min(line.find('m', i), line.size() - 1);
    } else {
      text += line[i];
    }
  }
  return text_width(text);
}

}  // namespace ztape::report
