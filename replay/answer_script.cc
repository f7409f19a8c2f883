#include "replay/answer_script.h"

#include <algorithm>
#include <utility>

namespace ztape::replay {
namespace {

struct TimedStep {
  AnswerStep step;
  int64_t time_ns = 0;
};

void append_message(std::string& body, const std::string& message) {
  const auto size = static_cast<uint32_t>(message.size());
  body += '\0';  // not compressed
  for (const int shift : {24, 16, 8, 0}) body += static_cast<char>(size >> shift & 0xff);
  body += message;
}

std::vector<TimedStep> steps_of(const Answer& answer, std::string& body) {
  std::vector<TimedStep> steps;
  if (!answer.headers.empty()) steps.push_back({{AnswerStep::Kind::headers, 0, 0, false}, answer.headers_ns});
  std::size_t offset = 0;
  int64_t frame = -1;
  for (const auto& message : answer.messages) {
    append_message(body, message.body);
    for (const auto& piece : message.pieces) {
      if (piece.frame != frame) {
        steps.push_back({{AnswerStep::Kind::frame, offset, offset, false}, answer.frame_ns[piece.frame]});
        frame = piece.frame;
      }
      offset += piece.length;
      steps.back().step.end = offset;
    }
  }
  if (answer.end == Answer::End::reset) {
    steps.push_back({{AnswerStep::Kind::reset, 0, 0, true}, answer.end_ns});
  } else if (!answer.trailers.empty()) {
    steps.push_back({{AnswerStep::Kind::trailers, 0, 0, true}, answer.trailers_ns});
  } else if (!steps.empty() && steps.back().step.kind == AnswerStep::Kind::frame) {
    steps.back().step.end_stream = true;
  } else {
    steps.push_back({{AnswerStep::Kind::frame, offset, offset, true}, answer.end_ns});
  }
  return steps;
}

// What of the request had come when a step was recorded, and since when.
void set_needs(const Answer& answer, int64_t time_ns, AnswerUnit& unit) {
  const auto all = answer.request_ns.size();
  unit.needs_requests = all;
  unit.needs_end = true;
  if (answer.interleaved) {
    unit.needs_requests = static_cast<std::size_t>(
        std::count_if(answer.request_ns.begin(), answer.request_ns.end(), [&](int64_t ns) { return ns <= time_ns; }));
    unit.needs_requests = std::max<std::size_t>(unit.needs_requests, 1);  // by which it is found
    unit.needs_end = answer.request_end_ns >= 0 && answer.request_end_ns <= time_ns;
  }
  auto since = answer.start_ns;
  if (unit.needs_requests > 0) since = std::max(since, answer.request_ns[unit.needs_requests - 1]);
  if (unit.needs_end) since = std::max(since, answer.request_end_ns);
  unit.delay_ns = std::max<int64_t>(time_ns - since, 0);
}

}  // namespace

AnswerScript make_script(Answer&& answer, WriteMode mode, bool timed) {
  AnswerScript script;
  const auto steps = steps_of(answer, script.body);
  int64_t previous_ns = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    script.steps.push_back(steps[i].step);
    AnswerUnit unit;
    unit.first = i;
    unit.last = i + 1;
    set_needs(answer, std::max(previous_ns, steps[i].time_ns), unit);
    previous_ns = std::max(previous_ns, steps[i].time_ns);
    const bool same_read = i > 0 && steps[i].time_ns == steps[i - 1].time_ns;
    bool together = i > 0 && mode != WriteMode::split && script.units.back().needs_requests == unit.needs_requests &&
                    script.units.back().needs_end == unit.needs_end;
    if (mode == WriteMode::recorded || timed) together = together && same_read;
    if (together) {
      script.units.back().last = i + 1;
    } else {
      script.units.push_back(unit);
    }
  }
  script.headers = std::move(answer.headers);
  script.trailers = std::move(answer.trailers);
  script.reset_code = answer.reset_code;
  return script;
}

}  // namespace ztape::replay
