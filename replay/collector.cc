#include "replay/collector.h"

#include <algorithm>

namespace ztape::replay {
namespace {

constexpr std::size_t kExamples = 3;

template <typename T>
FieldValue value_of(const std::optional<T>& value) {
  return value ? FieldValue(static_cast<int64_t>(*value)) : FieldValue();
}

// Everything in which a call differs, as rows of path and both values.
std::vector<DifferenceExample> rows_of(const DifferingCall& call) {
  std::vector<DifferenceExample> rows;
  const auto& difference = call.difference;
  const auto add = [&](std::optional<uint64_t> message, std::string path, FieldValue left, FieldValue right) {
    rows.push_back({call.connection, call.stream, message, std::move(path), std::move(left), std::move(right)});
  };
  if (difference.http_status) {
    add({}, "http_status", value_of(difference.http_status->first), value_of(difference.http_status->second));
  }
  if (difference.grpc_status) {
    add({}, "grpc_status", value_of(difference.grpc_status->first), value_of(difference.grpc_status->second));
  }
  if (difference.grpc_message) add({}, "grpc_message", difference.grpc_message->first, difference.grpc_message->second);
  if (difference.ended_by) add({}, "ended_by", difference.ended_by->first, difference.ended_by->second);
  if (difference.messages) add({}, "messages", difference.messages->first, difference.messages->second);
  for (const auto& field : difference.fields) {
    add(difference.first_differing_message, field.path, field.left, field.right);
  }
  return rows;
}

std::string counted_calls(uint64_t calls) {
  return std::to_string(calls) + (calls == 1 ? " call" : " calls");
}

}  // namespace

Collector::Collector(const Plan& plan, const std::vector<Target>& targets, std::optional<std::size_t> reference)
    : plan_(plan), reference_(reference) {
  for (const auto& target : targets) {
    TargetResult result;
    result.name = target.name;
    result.url = target.url.text;
    targets_.push_back(std::move(result));
  }
}

MethodResult& Collector::method_of(std::size_t target, const std::string& method) {
  auto& methods = targets_[target].methods;
  const auto found = std::ranges::find(methods, method, &MethodResult::method);
  if (found != methods.end()) return *found;
  methods.emplace_back().method = method;
  return methods.back();
}

void Collector::call_over(std::size_t target, uint64_t wallet, std::size_t session, CallResult&& result) {
  const auto& planned = plan_.sessions[session].calls[result.call];
  auto& method = method_of(target, planned.method);
  ++method.calls;
  auto& slot = round_[{wallet, result.call}];
  slot.session = session;
  slot.call = result.call;
  slot.answers.resize(targets_.size());
  slot.played.resize(targets_.size());
  slot.played[target] = true;
  if (result.sent) sent_.emplace(session, result.call);
  if (!result.failure.empty()) {
    ++method.failed;
    ++targets_[target].failures[result.failure];
    return;
  }
  method.messages += result.answer.messages();
  method.bytes += result.answer.bytes;
  if (planned.cut() || result.answer.outcome.cut()) {
    ++method.cancelled;
  } else {
    method.end_from_due.add(result.end - *result.due);
    method.end_from_sent.add(result.end - *result.sent);
  }
  if (result.first_byte) method.first_byte_from_sent.add(*result.first_byte - *result.sent);
  slot.answers[target] = std::make_unique<ReplayedAnswer>(std::move(result.answer));
}

void Collector::end_round() {
  for (const auto& [unused, slot] : round_) judge(slot);
  round_.clear();
}

void Collector::judge(const Slot& slot) {
  const auto& planned = plan_.sessions[slot.session].calls[slot.call];
  if (reference_) {
    judge_by_target(slot, planned);
  } else {
    judge_by_recording(slot, planned);
  }
}

void Collector::judge_by_recording(const Slot& slot, const PlannedCall& planned) {
  std::vector<std::size_t> differ;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (!slot.answers[i]) continue;
    auto difference = compare_with_recording(*planned.recorded, *slot.answers[i]);
    auto& method = method_of(i, planned.method);
    if (!difference.any()) {
      ++method.agree;
      continue;
    }
    ++method.differ;
    differ.push_back(i);
    add_difference(slot, std::string(kRecording), i, std::move(difference));
  }
  // Where two targets both differ from the recording, whether they differ from each other is not yet said.
  for (std::size_t i = 0; i < differ.size(); ++i) {
    for (std::size_t j = i + 1; j < differ.size(); ++j) {
      auto difference = compare_answers(*planned.recorded, *slot.answers[differ[i]], *slot.answers[differ[j]]);
      if (difference.any()) add_difference(slot, targets_[differ[i]].name, differ[j], std::move(difference));
    }
  }
}

void Collector::judge_by_target(const Slot& slot, const PlannedCall& planned) {
  const auto& right = slot.answers[*reference_];
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (!slot.answers[i]) continue;
    auto& method = method_of(i, planned.method);
    if (i == *reference_) {
      ++method.agree;
      continue;
    }
    if (!right) {
      ++method.not_compared;
      continue;
    }
    auto difference = compare_answers(*planned.recorded, *right, *slot.answers[i]);
    if (!difference.any()) {
      ++method.agree;
      continue;
    }
    ++method.differ;
    add_difference(slot, targets_[*reference_].name, i, std::move(difference));
  }
}

void Collector::add_difference(const Slot& slot, std::string reference, std::size_t target,
                               AnswerDifference difference) {
  const auto& session = plan_.sessions[slot.session];
  const auto& planned = session.calls[slot.call];
  auto& call = differing_[{reference, targets_[target].name, slot.session, slot.call}];
  if (call.count++ > 0) return;
  call.reference = std::move(reference);
  call.target = targets_[target].name;
  call.connection = session.connection->id;
  call.stream = planned.recorded->stream;
  call.method = planned.method;
  call.request_hex = request_hex(*planned.recorded);
  call.difference = std::move(difference);
}

void Collector::add_skipped(const std::string& method, const std::string& reason, uint64_t calls) {
  skipped_[{reason, method}] += calls;
}

void Collector::finish(ReplayReport& report) {
  end_round();
  report.reference = reference_ ? targets_[*reference_].name : std::string(kRecording);
  for (const auto& [unused, call] : differing_) report.differing_calls.push_back(call);
  group_differences(report);
  cover(report);
  report.targets = targets_;
  decide(report);
}

void Collector::group_differences(ReplayReport& report) const {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::size_t> places;
  for (const auto& call : report.differing_calls) {
    std::set<std::size_t> touched;
    for (auto& row : rows_of(call)) {
      const auto path = path_without_indexes(row.path);
      const auto [place, is_new] =
          places.try_emplace({call.reference, call.target, call.method, path}, report.differences.size());
      if (is_new) report.differences.push_back({call.reference, call.target, call.method, path, 0, 0, {}});
      auto& group = report.differences[place->second];
      if (touched.insert(place->second).second) {
        group.count += call.count;
        ++group.calls;
      }
      if (group.examples.size() < kExamples) group.examples.push_back(std::move(row));
    }
  }
}

void Collector::cover(ReplayReport& report) const {
  std::set<std::string> methods;
  auto skipped = skipped_;
  std::set<std::string> unreadable;
  auto& coverage = report.coverage;
  coverage.sessions = plan_.sessions.size();
  for (std::size_t s = 0; s < plan_.sessions.size(); ++s) {
    const auto& calls = plan_.sessions[s].calls;
    coverage.calls += calls.size();
    for (uint32_t c = 0; c < calls.size(); ++c) {
      if (calls[c].skipped()) {
        ++skipped[{calls[c].skip_reason, calls[c].method}];
        if (calls[c].unreadable) unreadable.insert(calls[c].skip_reason);
      }
      if (!sent_.contains({s, c})) continue;
      ++coverage.calls_replayed;
      methods.insert(calls[c].method);
      if (calls[c].recorded->response_bytes > 0) ++coverage.answers_not_empty;
    }
  }
  coverage.methods_replayed = methods.size();
  for (const auto& [key, calls] : skipped) {
    report.skipped.push_back({key.second, key.first, calls, unreadable.contains(key.first)});
  }
}

void Collector::decide(ReplayReport& report) const {
  uint64_t answered = 0;
  for (const auto& target : targets_) {
    uint64_t failed = 0;
    uint64_t calls = 0;
    for (const auto& method : target.methods) {
      failed += method.failed;
      calls += method.calls;
      answered += method.agree + method.differ;
    }
    if (failed > 0) {
      report.incomplete.push_back(target.name +
                                  (target.unreachable.empty() ? "" : " is unreachable (" + target.unreachable + ")") +
                                  (target.unreachable.empty() ? ": " : ", ") + counted_calls(failed) + " of " +
                                  std::to_string(calls) + " failed");
    } else if (!target.unreachable.empty()) {
      report.incomplete.push_back(target.name + " is unreachable: " + target.unreachable);
    }
  }
  uint64_t unreadable = 0;
  for (const auto& skipped : report.skipped) unreadable += skipped.unreadable ? skipped.calls : 0;
  if (unreadable > 0) report.incomplete.push_back(counted_calls(unreadable) + " of the capture could not be read");
  if (answered == 0 && report.incomplete.empty()) report.incomplete.push_back("no call was replayed");
  const bool differ = !report.differing_calls.empty();
  report.verdict = !report.incomplete.empty() ? Verdict::incomplete : differ ? Verdict::differ : Verdict::agree;
}

}  // namespace ztape::replay
