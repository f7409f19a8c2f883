#include "report/demo_page.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "diagnose/silent_gaps.h"
#include "report/text.h"

namespace ztape::report {
namespace {

using nlohmann::json;
using Align = Table::Align;

// Where the targets stand in the report.
constexpr std::size_t kZaino = 0;
constexpr std::size_t kZtreamer = 1;
constexpr std::size_t kCured = 2;
constexpr std::array kTitles{"Zaino", "Ztreamer", "Zaino behind ztape"};

struct Silence {
  uint64_t gap_count = 0;
  int64_t gap_ns = 0;
  int64_t median_ns = 0;
  int64_t open_ns = 0;  // that the connections were open
};

Silence silence_of(const http2::RecordedCapture& capture) {
  Silence silence;
  std::vector<int64_t> lengths;
  for (const auto& connection : capture.connections) {
    for (const auto& gap : diagnose::silent_gaps(connection)) lengths.push_back(gap.to_ns - gap.from_ns);
    if (connection.close_ns >= 0) silence.open_ns += connection.close_ns - connection.open_ns;
  }
  silence.gap_count = lengths.size();
  for (const int64_t length : lengths) silence.gap_ns += length;
  if (!lengths.empty()) {
    std::ranges::nth_element(lengths, lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2));
    silence.median_ns = lengths[lengths.size() / 2];
  }
  return silence;
}

std::string recorded(const DemoResults& results) {
  uint64_t bytes[2] = {0, 0};
  std::size_t calls = 0;
  std::set<std::string> methods;
  for (const auto& connection : results.recording.connections) {
    calls += connection.calls.size();
    for (const auto& call : connection.calls) methods.insert(call.path);
    for (const int direction : {0, 1}) bytes[direction] += connection.bytes[direction];
  }
  const bool lossless = results.recording.gaps.empty() && results.recording.damage.empty();
  return "RECORDED  A real wallet's sync of one chain, sent through `ztape proxy` to what a real Zaino answered it:\n"
         "  " +
         counted(calls, "call") + " of " + counted(methods.size(), "method") + ", " + byte_count(bytes[0]) + " sent, " +
         byte_count(bytes[1]) + " received, in " + duration(silence_of(results.recording).open_ns) +
         (lossless ? ". Lost: nothing.\n" : ". Not all of it could be recorded.\n");
}

std::string value_text(const json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return text.empty() ? "(empty)" : escaped(text, 60);
  }
  return value.dump();
}

// The calls that Ztreamer answers in another way than Zaino did.
std::string answers(const json& report) {
  const auto& ztreamer = report.at("targets").at(kZtreamer);
  const auto& name = ztreamer.at("name");
  std::vector<const json*> differing;
  for (const auto& call : report.at("differing_calls")) {
    if (call.at("target") == name && call.at("reference") == "recording") differing.push_back(&call);
  }
  const uint64_t rounds = ztreamer.at("rounds");
  const uint64_t calls = report.at("coverage").at("calls_replayed");
  std::string text = "ANSWERS  Replayed " + counted(rounds, "time") + ", Ztreamer answers " +
                     count(calls - differing.size()) + " of the " + count(calls) + " calls as Zaino did, byte for byte";
  if (differing.empty()) return text + ".\n";
  text += "; " + count(differing.size()) + (differing.size() == 1 ? " differs:\n" : " differ:\n");
  for (const auto* call : differing) {
    Table table({{escaped(call->at("method").get<std::string>())}, {"Zaino"}, {"Ztreamer"}});
    for (const char* outcome : {"http_status", "grpc_status", "grpc_message", "messages", "ended_by"}) {
      if (call->contains(outcome))
        table.row({outcome, value_text(call->at(outcome).at(0)), value_text(call->at(outcome).at(1))});
    }
    for (const auto& field : call->value("fields", json::array())) {
      table.row(
          {escaped(field.at("field").get<std::string>()), value_text(field.at("left")), value_text(field.at("right"))});
    }
    text += table.text();
  }
  return text;
}

std::string median_text(const json& method) {
  const auto& quantiles = method.at("from_sent");
  if (!quantiles.at("p50_ns").is_null()) return milliseconds(quantiles.at("p50_ns"));
  return quantiles.at("max_ns").is_null() ? "-" : milliseconds(quantiles.at("max_ns")) + " max";
}

std::string session_text(const json& target) {
  const int64_t rounds = target.at("rounds");
  return rounds > 0 ? duration(target.at("busy_ns").get<int64_t>() / rounds) : "-";
}

std::string times(const json& report) {
  Table table({{"method"},
               {"calls", Align::right},
               {kTitles[kZaino], Align::right},
               {kTitles[kZtreamer], Align::right},
               {kTitles[kCured], Align::right}});
  const auto& targets = report.at("targets");
  std::vector<std::string> order;
  std::map<std::string, std::array<std::string, 4>> rows;
  for (const auto& method : report.at("methods")) {
    const std::string name = method.at("method");
    if (!rows.contains(name)) order.push_back(name);
    auto& row = rows[name];
    for (std::size_t i = 0; i < kTitles.size(); ++i) {
      if (method.at("target") == targets.at(i).at("name")) row[i + 1] = median_text(method);
    }
    const uint64_t rounds = std::max<uint64_t>(1, targets.at(kZaino).at("rounds"));
    if (method.at("target") == targets.at(kZaino).at("name"))
      row[0] = count(method.at("calls").get<uint64_t>() / rounds);
  }
  for (const auto& name : order) table.row({escaped(name), rows[name][0], rows[name][1], rows[name][2], rows[name][3]});
  table.row({"the whole session", "", session_text(targets.at(kZaino)), session_text(targets.at(kZtreamer)),
             session_text(targets.at(kCured))});
  return "TIMES  Median ms a call; the wallet's own think time is kept:\n" + table.text();
}

std::string floor_text(const DemoResults& results) {
  const auto held = silence_of(results.recording);
  const auto cured = silence_of(results.cured);
  const auto sessions = std::max<std::size_t>(1, results.cured.connections.size());
  std::string text = "THE 40 MS FLOOR\n";
  if (held.gap_count == 0)
    return text + "  There is none on this machine: no silence as long as a delayed ACK in this recording.\n";
  text +=
      "  Zaino answers in small writes and does not set TCP_NODELAY: a write waits (Nagle) until the wallet's side "
      "has\n"
      "  acknowledged the one before, and that ACK is delayed. Nothing crosses meanwhile, " +
      duration(held.median_ns) + " each time.\n  It cost this wallet " + counted(held.gap_count, "such silence") +
      ": " + duration(held.gap_ns) + " of " + duration(held.open_ns) + ".\n" +
      "  Behind `ztape proxy --upstream-quickack read`, the indexer untouched: " +
      counted(cured.gap_count / sessions, "such silence") + ", " +
      duration(cured.open_ns / static_cast<int64_t>(sessions)) + " a session.\n";
  return text;
}

constexpr const char* kOwnCommands =
    "YOUR OWN WALLET AND INDEXER\n"
    "  ztape proxy --upstream http://127.0.0.1:8137 -w sync.ztape     point the wallet at 127.0.0.1:9167; Ctrl-C ends "
    "it\n"
    "  ztape show -r sync.ztape                                       what was said, and the silence in it\n"
    "  ztape replay -r sync.ztape --target zaino=http://127.0.0.1:8137 --target ztreamer=http://127.0.0.1:9067\n"
    "  ztape proxy --upstream http://127.0.0.1:8137 --upstream-quickack read     the floor taken away\n";

}  // namespace

Result<std::string> demo_page(const DemoResults& results) {
  try {
    const auto report = json::parse(results.replay_report);
    return recorded(results) + "\n" + answers(report) + "\n" + times(report) + "\n" + floor_text(results) + "\n" +
           kOwnCommands;
  } catch (const json::exception& error) {
    return std::unexpected(
        Error{ErrorCode::usage, std::string("the report is not in its own form: ") + error.what(), ""});
  }
}

}  // namespace ztape::report
