#include "report/replay_page.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

#include "report/text.h"

namespace ztape::report {
namespace {

using replay::ReplayReport;
using replay::Verdict;

constexpr std::size_t kLongestValue = 100;  // bytes of a value that is shown

std::string value_text(const FieldValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return "nothing";
        } else if constexpr (std::is_same_v<T, bool>) {
          return held ? "true" : "false";
        } else if constexpr (std::is_same_v<T, std::string>) {
          return "\"" + escaped(held, kLongestValue) + "\"";
        } else {
          return std::to_string(held);
        }
      },
      value);
}

std::string quantile(const Histogram& histogram, double share) {
  const auto value = histogram.quantile_ns(share);
  return value ? milliseconds(*value) : "-";
}

// In the order in which they first appear at any target.
std::vector<std::string> methods_of(const ReplayReport& report) {
  std::vector<std::string> methods;
  std::set<std::string> seen;
  for (const auto& target : report.targets) {
    for (const auto& method : target.methods) {
      if (seen.insert(method.method).second) methods.push_back(method.method);
    }
  }
  return methods;
}

std::string what_was_played(const ReplayReport& report) {
  const auto& coverage = report.coverage;
  const auto& load = report.load;
  std::string text = escaped(report.environment.capture) + ": " + counted(coverage.sessions, "session") + ", " +
                     counted(coverage.calls, "call") + "\n" + counted(load.clients, "client") + ", " +
                     counted(load.rounds, "round");
  if (load.warmup > 0) text += " after " + std::to_string(load.warmup) + " of warm-up";
  text += ", pace " + load.pace;
  if (load.speed != 1) {
    std::array<char, 32> speed{};
    std::snprintf(speed.data(), speed.size(), " at speed %g", load.speed);
    text += speed.data();
  }
  return text + "\n";
}

std::string method_table(const ReplayReport& report) {
  using Align = Table::Align;
  Table table({{"method"},
               {"target"},
               {"calls", Align::right},
               {"agree", Align::right},
               {"differ", Align::right},
               {"failed", Align::right},
               {"p50 ms", Align::right},
               {"p90", Align::right},
               {"p99", Align::right},
               {"max", Align::right},
               {"messages", Align::right}});
  for (const auto& name : methods_of(report)) {
    std::string head = escaped(name);
    for (const auto& target : report.targets) {
      const auto method = std::ranges::find(target.methods, name, &replay::MethodResult::method);
      if (method == target.methods.end()) continue;
      const auto& latency = method->end_from_due;
      table.row({head, escaped(target.name), count(method->calls), count(method->agree), count(method->differ),
                 count(method->failed), quantile(latency, .5), quantile(latency, .9), quantile(latency, .99),
                 latency.count() > 0 ? milliseconds(latency.max_ns()) : "-", count(method->messages)});
      head.clear();
    }
  }
  if (table.empty()) return "";
  return "\n" + table.text() +
         "  Times are from when a call was due until its last byte. - : too few samples, or cut by the wallet.\n";
}

std::string target_lines(const ReplayReport& report) {
  std::string text = "\n";
  for (const auto& target : report.targets) {
    text += "  " + escaped(target.name) + "  " + escaped(target.url) + ": " + counted(target.rounds, "round") + ", " +
            counted(target.connections, "connection");
    if (target.rounds > 0 && target.connections > 0) {
      text += ", " + duration(target.busy_ns / static_cast<int64_t>(target.rounds)) + " a round, at most " +
              counted(target.max_in_flight, "call") + " in flight";
    }
    text += "\n";
    if (!target.unreachable.empty()) text += "    unreachable: " + escaped(target.unreachable) + "\n";
    for (const auto& [reason, calls] : target.failures) {
      text += "    " + counted(calls, "call") + " failed: " + escaped(reason) + "\n";
    }
  }
  return text;
}

std::string place(const replay::DifferenceExample& example) {
  std::string text = "connection " + std::to_string(example.connection) + ", stream " + std::to_string(example.stream);
  if (example.message) text += ", message " + std::to_string(*example.message);
  return text;
}

std::string differences(const ReplayReport& report) {
  if (report.coverage.calls_replayed == 0) return "";
  if (report.differences.empty()) return "\nNo answer differs.\n";
  std::string text;
  std::string head;
  for (const auto& group : report.differences) {
    const std::string sides =
        "\nDifferences of " + escaped(group.target) + " (right) from " + escaped(group.reference) + " (left)\n";
    if (sides != head) text += sides;
    head = sides;
    text += "  " + escaped(group.method) + "  " + escaped(group.path) + ": " + counted(group.calls, "call") + ", " +
            counted(group.count, "answer") + "\n";
    for (const auto& example : group.examples) {
      text += "    " + place(example);
      if (example.path != group.path) text += ", " + escaped(example.path);
      text += ": " + value_text(example.left) + " | " + value_text(example.right) + "\n";
    }
  }
  return text;
}

std::string skipped_lines(const ReplayReport& report) {
  if (report.skipped.empty()) return "";
  std::string text = "\nNot replayed\n";
  for (const auto& skipped : report.skipped) {
    text +=
        "  " + escaped(skipped.method) + ", " + counted(skipped.calls, "call") + ": " + escaped(skipped.reason) + "\n";
  }
  return text;
}

std::string coverage_line(const ReplayReport& report) {
  const auto& coverage = report.coverage;
  return "\nCoverage: " + counted(coverage.methods_replayed, "method") + ", " + count(coverage.calls_replayed) +
         " of " + counted(coverage.calls, "call") + ", " + counted(coverage.answers_not_empty, "recorded answer") +
         " not empty\n";
}

std::string verdict_line(const ReplayReport& report) {
  switch (report.verdict) {
    case Verdict::agree: return "Verdict: the answers agree\n";
    case Verdict::differ: {
      std::set<std::pair<uint64_t, uint32_t>> calls;
      for (const auto& call : report.differing_calls) calls.emplace(call.connection, call.stream);
      return "Verdict: the answers differ, in " + std::to_string(calls.size()) + " of " +
             counted(report.coverage.calls_replayed, "call") + "\n";
    }
    case Verdict::incomplete: break;
  }
  std::string text = "Verdict: incomplete\n";
  for (const auto& reason : report.incomplete) text += "  " + escaped(reason) + "\n";
  return text;
}

}  // namespace

std::string replay_page(const ReplayReport& report) {
  return what_was_played(report) + method_table(report) + target_lines(report) + differences(report) +
         skipped_lines(report) + coverage_line(report) + verdict_line(report);
}

}  // namespace ztape::report
