#include "replay/scheduler.h"

#include <algorithm>

namespace ztape::replay {

Scheduler::Scheduler(const Session& session, const Pacing& pacing, const std::vector<bool>& left_out)
    : session_(session), pacing_(pacing), calls_(session.calls.size()), met_(session.events.size(), false) {
  calls_left_ = calls_.size();
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    if (!session_.calls[i].skipped() && (left_out.empty() || !left_out[i])) continue;
    calls_[i].over = true;
    --calls_left_;
    for (const auto event : session_.calls[i].events) met_[event] = true;
  }
}

void Scheduler::connected(MonotonicTime now) {
  start_ = now;
  release_steps(now);
}

void Scheduler::response_headers(uint32_t call, MonotonicTime now) {
  calls_[call].headers = true;
  meet_answer(call, now);
}

void Scheduler::response_message(uint32_t call, MonotonicTime now) {
  ++calls_[call].messages;
  meet_answer(call, now);
}

void Scheduler::ended(uint32_t call, MonotonicTime now) {
  auto& state = calls_[call];
  if (state.over) return;
  state.over = true;
  state.waiting = nullptr;
  --calls_left_;
  for (const auto event : session_.calls[call].events) met_[event] = true;
  release_steps(now);
  drop_over();
}

// Marks what of the call's recorded answer has come.
void Scheduler::meet_answer(uint32_t call, MonotonicTime now) {
  auto& state = calls_[call];
  if (state.over) return;
  const auto& events = session_.calls[call].events;
  while (state.events_met < events.size()) {
    const auto& event = session_.events[events[state.events_met]];
    const bool came = event.kind == EventKind::headers
                          ? state.headers
                          : event.kind == EventKind::message && event.message < state.messages;
    if (!came) break;
    met_[events[state.events_met++]] = true;
  }
  if (state.waiting && own_answer_met(*state.waiting)) release(*std::exchange(state.waiting, nullptr), now);
  release_steps(now);
}

void Scheduler::release_steps(MonotonicTime now) {
  while (frontier_ < met_.size() && met_[frontier_]) ++frontier_;
  for (; next_step_ < session_.steps.size() && session_.steps[next_step_].prefix <= frontier_; ++next_step_) {
    release(session_.steps[next_step_], now);
  }
}

bool Scheduler::own_answer_met(const Step& step) const {
  const auto& planned = session_.calls[step.call];
  const auto& state = calls_[step.call];
  return (state.headers || !planned.cancel_needs_headers) && state.messages >= planned.cancel_needs_messages;
}

void Scheduler::release(const Step& step, MonotonicTime now) {
  auto& state = calls_[step.call];
  if (state.over) return;
  if (step.kind == StepKind::cancel && !own_answer_met(step)) {
    state.waiting = &step;
    return;
  }
  MonotonicTime at = now;
  const auto scaled = [&](int64_t ns) { return static_cast<int64_t>(static_cast<double>(ns) / pacing_.speed); };
  switch (pacing_.pace) {
    case Pace::think: at.ns += scaled(step.think_ns); break;
    case Pace::recorded: at.ns = std::max(now.ns, start_.ns + scaled(step.since_open_ns)); break;
    case Pace::none: break;
  }
  at = std::max(at, state.last_due);
  state.last_due = at;
  const auto order = static_cast<uint32_t>(&step - session_.steps.data());
  due_.push({at, order, {step.kind, step.call, step.message, at}});
}

// Steps of calls that are over must not wake anybody.
void Scheduler::drop_over() {
  while (!due_.empty() && calls_[due_.top().action.call].over) due_.pop();
}

std::optional<Action> Scheduler::take_due(MonotonicTime now) {
  drop_over();
  if (due_.empty() || due_.top().at > now) return std::nullopt;
  const Action action = due_.top().action;
  due_.pop();
  const auto& planned = session_.calls[action.call];
  if (action.kind == StepKind::start && planned.deadline_ns) {
    const MonotonicTime deadline{now.ns + *planned.deadline_ns};
    const auto order = static_cast<uint32_t>(session_.steps.size()) + action.call;
    due_.push({deadline, order, {StepKind::cancel, action.call, 0, deadline}});
  }
  drop_over();
  return action;
}

std::optional<MonotonicTime> Scheduler::next_due() const {
  if (due_.empty()) return std::nullopt;
  return due_.top().at;
}

}  // namespace ztape::replay
