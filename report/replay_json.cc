#include "report/replay_json.h"

#include <nlohmann/json.hpp>

#include "http2/recorded_connection.h"

namespace ztape::report {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kReportVersion = 1;

std::string utc(WallTime time) {
  capture::CaptureStart start;
  start.mutable_opened()->set_realtime_unix_ns(time.unix_ns);
  return http2::absolute_time(start, 0);
}

template <typename T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json value_json(const FieldValue& value) {
  return std::visit(
      [](const auto& held) -> ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) {
          return nullptr;
        } else {
          return held;
        }
      },
      value);
}

ordered_json quantiles_json(const Histogram& histogram) {
  return {{"samples", histogram.count()},
          {"p50_ns", or_null(histogram.quantile_ns(.5))},
          {"p90_ns", or_null(histogram.quantile_ns(.9))},
          {"p99_ns", or_null(histogram.quantile_ns(.99))},
          {"max_ns", histogram.count() > 0 ? ordered_json(histogram.max_ns()) : ordered_json()}};
}

ordered_json target_json(const replay::TargetResult& target) {
  uint64_t calls = 0;
  uint64_t agree = 0;
  uint64_t differ = 0;
  uint64_t failed = 0;
  for (const auto& method : target.methods) {
    calls += method.calls;
    agree += method.agree;
    differ += method.differ;
    failed += method.failed;
  }
  auto failures = ordered_json::array();
  for (const auto& [reason, count] : target.failures) failures.push_back({{"reason", reason}, {"calls", count}});
  return {{"name", target.name},
          {"url", target.url},
          {"calls", calls},
          {"agree", agree},
          {"differ", differ},
          {"failed", failed},
          {"failures", failures},
          {"unreachable", target.unreachable.empty() ? ordered_json() : ordered_json(target.unreachable)},
          {"rounds", target.rounds},
          {"busy_ns", target.busy_ns},
          {"connections", target.connections},
          {"connect", quantiles_json(target.connect)},
          {"max_in_flight", target.max_in_flight},
          {"mean_in_flight", target.busy_ns > 0 ? target.in_flight_ns / static_cast<double>(target.busy_ns) : 0}};
}

ordered_json method_json(const replay::ReplayReport& report, const replay::TargetResult& target,
                         const replay::MethodResult& method) {
  return {{"target", target.name},
          {"method", method.method},
          {"clients", report.load.clients},
          {"calls", method.calls},
          {"agree", method.agree},
          {"differ", method.differ},
          {"failed", method.failed},
          {"not_compared", method.not_compared},
          {"cancelled", method.cancelled},
          {"messages", method.messages},
          {"bytes", method.bytes},
          {"from_due", quantiles_json(method.end_from_due)},
          {"from_sent", quantiles_json(method.end_from_sent)},
          {"first_byte_from_sent", quantiles_json(method.first_byte_from_sent)}};
}

ordered_json side(const std::optional<int>& value) {
  return or_null(value);
}

ordered_json side(const std::string& value) {
  return value;
}

ordered_json side(uint64_t value) {
  return value;
}

template <typename T>
void add_pair(ordered_json& object, const char* key, const replay::AnswerDifference::Pair<T>& pair) {
  if (pair) object[key] = ordered_json::array({side(pair->first), side(pair->second)});
}

ordered_json differing_json(const replay::DifferingCall& call) {
  const auto& difference = call.difference;
  ordered_json object{{"reference", call.reference}, {"target", call.target}, {"connection", call.connection},
                      {"stream", call.stream},       {"method", call.method}, {"request_hex", call.request_hex},
                      {"count", call.count}};
  add_pair(object, "http_status", difference.http_status);
  add_pair(object, "grpc_status", difference.grpc_status);
  add_pair(object, "grpc_message", difference.grpc_message);
  add_pair(object, "ended_by", difference.ended_by);
  add_pair(object, "messages", difference.messages);
  if (!difference.first_differing_message) return object;
  object["first_differing_message"] = *difference.first_differing_message;
  auto& fields = object["fields"] = ordered_json::array();
  for (const auto& field : difference.fields) {
    fields.push_back({{"field", field.path}, {"left", value_json(field.left)}, {"right", value_json(field.right)}});
  }
  return object;
}

ordered_json group_json(const replay::DifferenceGroup& group) {
  auto examples = ordered_json::array();
  for (const auto& example : group.examples) {
    examples.push_back({{"connection", example.connection},
                        {"stream", example.stream},
                        {"message", or_null(example.message)},
                        {"field", example.path},
                        {"left", value_json(example.left)},
                        {"right", value_json(example.right)}});
  }
  return {{"reference", group.reference}, {"target", group.target}, {"method", group.method}, {"path", group.path},
          {"count", group.count},         {"calls", group.calls},   {"examples", examples}};
}

template <typename List, typename Function>
ordered_json array_of(const List& list, const Function& function) {
  auto array = ordered_json::array();
  for (const auto& element : list) array.push_back(function(element));
  return array;
}

}  // namespace

std::string replay_json(const replay::ReplayReport& report) {
  auto methods = ordered_json::array();
  for (const auto& target : report.targets) {
    for (const auto& method : target.methods) methods.push_back(method_json(report, target, method));
  }
  const auto& environment = report.environment;
  const ordered_json document{{"report_version", kReportVersion},
                              {"verdict", replay::name(report.verdict)},
                              {"incomplete", report.incomplete},
                              {"reference", report.reference},
                              {"targets", array_of(report.targets, target_json)},
                              {"methods", methods},
                              {"differences", array_of(report.differences, group_json)},
                              {"differing_calls", array_of(report.differing_calls, differing_json)},
                              {"skipped", array_of(report.skipped,
                                                   [](const replay::Skipped& skipped) -> ordered_json {
                                                     return {{"method", skipped.method},
                                                             {"reason", skipped.reason},
                                                             {"calls", skipped.calls},
                                                             {"unreadable", skipped.unreadable}};
                                                   })},
                              {"coverage",
                               {{"sessions", report.coverage.sessions},
                                {"calls", report.coverage.calls},
                                {"calls_replayed", report.coverage.calls_replayed},
                                {"methods_replayed", report.coverage.methods_replayed},
                                {"answers_not_empty", report.coverage.answers_not_empty}}},
                              {"load",
                               {{"clients", report.load.clients},
                                {"wallets", report.load.wallets},
                                {"rounds", report.load.rounds},
                                {"warmup", report.load.warmup},
                                {"pace", report.load.pace},
                                {"speed", report.load.speed}}},
                              {"environment",
                               {{"capture", environment.capture},
                                {"ztape", environment.version},
                                {"kernel", environment.kernel},
                                {"cpu", environment.cpu},
                                {"cpus", environment.cpus},
                                {"congestion_control", environment.congestion_control},
                                {"time", utc(environment.started)},
                                {"duration_ns", environment.duration_ns}}}};
  // Text from the wire need not be UTF-8; JSON must be.
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace ztape::report
