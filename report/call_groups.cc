#include "report/call_groups.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "proto/method_table.h"
#include "report/call_words.h"
#include "report/text.h"

namespace ztape::report {
namespace {

using Align = Table::Align;
using Json = nlohmann::ordered_json;

std::string value_of(GroupKey key, const http2::Call& call) {
  switch (key) {
    case GroupKey::method: return method_name(call);
    case GroupKey::status: return outcome(call);
    case GroupKey::user_agent: {
      const auto* agent = http2::find_header(call.request_headers, "user-agent");
      return agent ? *agent : std::string();
    }
  }
  return "";
}

std::string_view word(GroupKey key) {
  switch (key) {
    case GroupKey::method: return "method";
    case GroupKey::user_agent: return "user_agent";
    case GroupKey::status: return "status";
  }
  return "";
}

// The smallest value that at least that share of them does not exceed. `sorted` is not empty.
int64_t quantile(const std::vector<int64_t>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

void CallGroups::add(const http2::Call& call) {
  std::vector<std::string> values;
  for (const auto key : keys_) values.push_back(value_of(key, call));
  Group& group = groups_[std::move(values)];
  ++group.calls;
  if (http2::is_error(call)) ++group.errors;
  group.sent_bytes += content_bytes(call, Direction::client_to_server);
  group.received_bytes += content_bytes(call, Direction::server_to_client);
  group.messages += call.request_message_count + call.response_message_count;
  const auto* method = find_method(call.path);
  group.deprecated = group.deprecated || (method && method->deprecated);
  if (call.start_ns < 0) return;
  if (group.first_ns < 0 || call.start_ns < group.first_ns) group.first_ns = call.start_ns;
  group.last_ns = std::max(group.last_ns, call.start_ns);
  if (call.end_ns >= 0) group.durations_ns.push_back(call.end_ns - call.start_ns);
}

void CallGroups::add(const http2::RecordedCapture& capture) {
  for (const auto& connection : capture.connections) {
    for (const auto& call : connection.calls) add(call);
  }
}

std::vector<const CallGroups::Row*> CallGroups::sorted() const {
  std::vector<const Row*> rows;
  for (const auto& row : groups_) rows.push_back(&row);
  std::ranges::stable_sort(rows, std::greater<>(), [](const Row* row) { return row->second.calls; });
  return rows;
}

std::string CallGroups::page(const capture::CaptureStart& start, std::size_t width) const {
  if (groups_.empty()) return "no calls\n";
  std::vector<Table::Column> columns;
  for (const auto key : keys_) {
    columns.push_back({key == GroupKey::user_agent ? "user agent" : std::string(word(key))});
  }
  const auto number = [&](const char* head, int dispensable) { columns.push_back({head, Align::right, dispensable}); };
  number("calls", 0);
  number("errors", 0);
  number("messages", 5);
  number("sent", 7);
  number("received", 4);
  number("p50 ms", 0);
  number("p95 ms", 2);
  number("max ms", 3);
  number("first seen", 6);
  number("last seen", 1);
  Table table(columns, "");
  // Of a capture of several days the time of day says little.
  int64_t least = -1;
  int64_t most = -1;
  for (const auto& [values, group] : groups_) {
    if (group.first_ns < 0) continue;
    least = least < 0 ? group.first_ns : std::min(least, group.first_ns);
    most = std::max(most, group.last_ns);
  }
  const auto day = [&](int64_t time_ns) { return http2::absolute_time(start, time_ns).substr(0, 10); };
  const bool days = least >= 0 && day(least) != day(most);
  const auto seen = [&](int64_t time_ns) {
    if (time_ns < 0) return std::string("-");
    auto text = http2::absolute_time(start, time_ns).substr(days ? 5 : 11, days ? 11 : 8);
    if (days) text[5] = ' ';
    return text;
  };
  bool deprecated = false;
  for (const auto* row : sorted()) {
    const auto& [values, group] = *row;
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      auto cell = values[i].empty() ? std::string(1, '-') : escaped(values[i], 60);
      if (keys_[i] == GroupKey::method && group.deprecated) {
        cell += " *";
        deprecated = true;
      }
      cells.push_back(std::move(cell));
    }
    auto durations = group.durations_ns;
    std::ranges::sort(durations);
    const auto at = [&](double share) { return durations.empty() ? "-" : milliseconds(quantile(durations, share)); };
    for (auto& cell :
         {count(group.calls), count(group.errors), count(group.messages), byte_count(group.sent_bytes),
          byte_count(group.received_bytes), at(.5), at(.95), at(1), seen(group.first_ns), seen(group.last_ns)}) {
      cells.push_back(cell);
    }
    table.row(std::move(cells));
  }
  return table.text(width) + (deprecated ? "\n* a deprecated method\n" : "");
}

std::string CallGroups::json(const capture::CaptureStart& start) const {
  Json page = Json::array();
  for (const auto* row : sorted()) {
    const auto& [values, group] = *row;
    Json out;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const bool none = keys_[i] == GroupKey::user_agent && values[i].empty();
      out[std::string(word(keys_[i]))] = none ? Json() : Json(values[i]);
      if (keys_[i] == GroupKey::method) out["deprecated"] = group.deprecated;
    }
    out["calls"] = group.calls;
    out["errors"] = group.errors;
    out["messages"] = group.messages;
    out["request_bytes"] = group.sent_bytes;
    out["response_bytes"] = group.received_bytes;
    auto durations = group.durations_ns;
    std::ranges::sort(durations);
    const auto at = [&](double share) { return durations.empty() ? Json() : Json(quantile(durations, share)); };
    out["p50_ns"] = at(.5);
    out["p95_ns"] = at(.95);
    out["max_ns"] = at(1);
    const auto seen = [&](int64_t time_ns) {
      return time_ns < 0 ? Json() : Json(http2::absolute_time(start, time_ns));
    };
    out["first_seen"] = seen(group.first_ns);
    out["last_seen"] = seen(group.last_ns);
    page.push_back(std::move(out));
  }
  return page.dump(2, ' ', true, Json::error_handler_t::replace);
}

}  // namespace ztape::report
