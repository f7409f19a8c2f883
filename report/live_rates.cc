#include "report/live_rates.h"

#include <utility>

namespace ztape::report {
namespace {

constexpr int64_t kWindowNs = 2'000'000'000;

double rate(uint64_t before, uint64_t now, double seconds) {
  return seconds > 0 && now > before ? static_cast<double>(now - before) / seconds : 0;
}

}  // namespace

void LiveRates::add(const proxy::LiveFacts& facts) {
  Sample sample;
  sample.time = facts.time;
  for (const auto direction : kDirections) sample.bytes[index(direction)] = facts.counts.bytes[index(direction)];
  sample.calls = facts.recorder.of_thread->calls;
  for (const auto& method : facts.recorder.of_thread->methods) sample.calls_of[method.path] = method.calls;
  samples_.push_back(std::move(sample));
  // One sample stays that is older than the window.
  while (samples_.size() > 2 && facts.time - samples_[1].time >= kWindowNs) samples_.pop_front();
}

double LiveRates::seconds() const {
  return samples_.empty() ? 0 : static_cast<double>(samples_.back().time - samples_.front().time) / 1e9;
}

double LiveRates::bytes_a_second(Direction direction) const {
  if (samples_.empty()) return 0;
  return rate(samples_.front().bytes[index(direction)], samples_.back().bytes[index(direction)], seconds());
}

double LiveRates::calls_a_second() const {
  return samples_.empty() ? 0 : rate(samples_.front().calls, samples_.back().calls, seconds());
}

double LiveRates::calls_a_second(std::string_view path) const {
  if (samples_.empty()) return 0;
  const auto& now = samples_.back().calls_of;
  const auto& before = samples_.front().calls_of;
  const auto last = now.find(path);
  if (last == now.end()) return 0;
  const auto first = before.find(path);
  return rate(first == before.end() ? 0 : first->second, last->second, seconds());
}

}  // namespace ztape::report
