#include "replay/plan.h"

#include <algorithm>
#include <charconv>
#include <tuple>

namespace ztape::replay {
namespace {

using http2::Call;
using http2::EndedBy;

// A cancel this near to the grpc-timeout was the deadline: clients' timers are coarse, and their clocks start earlier.
constexpr int64_t kDeadlineSlackNs = 50'000'000;

constexpr std::string_view kDarkside = "DarksideStreamer/";

bool answer_is_grpc(const Call& call) {
  const auto* type = http2::find_header(call.trailers_only ? call.trailers : call.response_headers, "content-type");
  return type && type->starts_with("application/grpc");
}

// Why the recording is not good enough to send the call again and judge its answer, or "".
std::string unreadable(const Call& call) {
  if (call.began_earlier) return "it began in an earlier file of the recording";
  if (call.path.empty() || call.start_ns < 0) return "its request could not be read";
  for (const auto& message : call.requests) {
    if (!message.error.empty()) return "its request could not be read: " + message.error;
  }
  if (call.request_tail_bytes > 0 && call.ended_by == EndedBy::trailers) return "its request is not whole";
  if (call.unreadable_reason.empty()) return "";
  if (call.request_end_ns < 0) return "its request could not be read: " + call.unreadable_reason;
  // An answer that is no gRPC (an HTML page) can be judged by its status.
  const bool other_content = call.http_status && call.ended_by == EndedBy::trailers && !answer_is_grpc(call);
  return other_content ? "" : "its answer could not be read: " + call.unreadable_reason;
}

bool allowed(const Policy& policy, const Call& call, const std::string& name) {
  return policy.allowed_methods.contains(call.path) || policy.allowed_methods.contains(name);
}

std::string skip_reason(const Policy& policy, const Call& call, const Method* method, const std::string& name) {
  if (call.path.find(kDarkside) != std::string::npos && !policy.allowed_methods.contains(call.path)) {
    return "it changes the server (DarksideStreamer; --allow-method with its full path sends it)";
  }
  if (method && method->name == "SendTransaction") {
    return policy.send_transactions ? "" : "it sends a transaction (--allow-send-transaction=CHAIN sends it)";
  }
  if ((method && method->reads_only) || allowed(policy, call, name)) return "";
  return "it is not known to only read (--allow-method sends it)";
}

// A client's RST_STREAM also ends the request; that is no half-close.
bool half_closed(const Call& call) {
  if (call.request_end_ns < 0) return false;
  const bool ended_by_cancel = call.ended_by == EndedBy::client_reset || call.ended_by == EndedBy::client_close;
  return !(ended_by_cancel && call.request_end_ns == call.end_ns);
}

int64_t last_time(const http2::RecordedConnection& connection) {
  int64_t last = std::max(connection.open_ns, connection.close_ns);
  for (const auto& call : connection.calls) {
    last = std::max({last, call.start_ns, call.request_end_ns, call.first_byte_ns, call.end_ns});
    if (!call.responses.empty()) last = std::max(last, call.responses.back().last_byte_ns);
  }
  return last;
}

class SessionMaker {
 public:
  SessionMaker(const http2::RecordedConnection& connection, const Policy& policy)
      : connection_(connection), policy_(policy), last_ns_(last_time(connection)) {
    session_.connection = &connection;
  }

  Session make() {
    for (const auto& call : connection_.calls) add_call(call);
    std::ranges::stable_sort(session_.events, {}, [](const Event& e) { return std::tuple(e.time_ns, e.call, e.kind); });
    for (uint32_t i = 0; i < session_.events.size(); ++i) {
      session_.calls[session_.events[i].call].events.push_back(i);
    }
    for (uint32_t i = 0; i < connection_.calls.size(); ++i) {
      if (!session_.calls[i].skipped()) add_steps(i);
    }
    std::ranges::stable_sort(session_.steps, {},
                             [](const Step& s) { return std::tuple(s.since_open_ns, s.call, s.kind, s.message); });
    return std::move(session_);
  }

 private:
  void add_call(const Call& call) {
    const auto index = static_cast<uint32_t>(session_.calls.size());
    const auto* method = find_method(call.path);
    PlannedCall planned;
    planned.recorded = &call;
    planned.method = call.path.empty() ? "(unreadable)" : std::string(short_name(call.path));
    planned.skip_reason = unreadable(call);
    planned.unreadable = planned.skipped();
    if (!planned.unreadable) planned.skip_reason = skip_reason(policy_, call, method, planned.method);
    planned.long_lived = method && method->long_lived;
    planned.sends_transaction = method && method->name == "SendTransaction";
    if (const auto* timeout = http2::find_header(call.request_headers, "grpc-timeout")) {
      planned.grpc_timeout_ns = parse_grpc_timeout(*timeout);
    }
    if (planned.grpc_timeout_ns && call.ended_by == EndedBy::client_reset &&
        std::abs(call.end_ns - call.start_ns - *planned.grpc_timeout_ns) <= kDeadlineSlackNs) {
      planned.deadline_ns = planned.grpc_timeout_ns;
    }
    session_.calls.push_back(std::move(planned));
    if (!session_.calls.back().long_lived) add_events(index, call);
  }

  void add_events(uint32_t index, const Call& call) {
    const bool cut = session_.calls[index].cut();
    // No event of a call stands before its start, whatever the clock of an import says: nothing could ever meet it.
    const auto add = [&](EventKind kind, std::size_t message, int64_t time_ns) {
      if (cut && call.end_ns >= 0 && time_ns > call.end_ns) return;  // it crossed the cancel
      session_.events.push_back({index, kind, static_cast<uint32_t>(message), std::max(time_ns, call.start_ns)});
    };
    if (call.first_byte_ns >= 0) add(EventKind::headers, 0, call.first_byte_ns);
    for (std::size_t i = 0; i < call.responses.size(); ++i) add(EventKind::message, i, call.responses[i].last_byte_ns);
    if (!cut && call.end_ns >= 0) add(EventKind::end, 0, call.end_ns);
  }

  void add_steps(uint32_t index) {
    PlannedCall& planned = session_.calls[index];
    const Call& call = *planned.recorded;
    add_step(index, StepKind::start, 0, call.start_ns);
    for (std::size_t i = 0; i < call.requests.size(); ++i) {
      add_step(index, StepKind::message, i, std::max(call.start_ns, call.requests[i].last_byte_ns));
    }
    if (half_closed(call)) add_step(index, StepKind::half_close, 0, std::max(call.start_ns, call.request_end_ns));
    if (!planned.cut() || planned.deadline_ns) return;
    const int64_t cancel_ns = call.end_ns >= 0 ? call.end_ns : last_ns_;
    Step& cancel = add_step(index, StepKind::cancel, 0, cancel_ns);
    if (planned.long_lived) await_own_answer(planned, cancel, cancel_ns);
  }

  Step& add_step(uint32_t call, StepKind kind, std::size_t message, int64_t time_ns) {
    // What the recorder saw leave for the wallet within one round trip of this step had not reached the wallet yet.
    const int64_t seen_ns = time_ns - connection_.downstream_rtt_ns;
    const auto prefix = static_cast<uint32_t>(std::ranges::lower_bound(session_.events, seen_ns, {}, &Event::time_ns) -
                                              session_.events.begin());
    const int64_t base_ns = prefix > 0 ? session_.events[prefix - 1].time_ns : connection_.open_ns;
    return session_.steps.emplace_back(Step{.call = call,
                                            .kind = kind,
                                            .message = static_cast<uint32_t>(message),
                                            .prefix = prefix,
                                            .think_ns = std::max<int64_t>(0, seen_ns - base_ns),
                                            .since_open_ns = std::max<int64_t>(0, seen_ns - connection_.open_ns)});
  }

  // The cancel of a long-lived call also waits for what of its own answer had come before it.
  void await_own_answer(PlannedCall& planned, Step& cancel, int64_t cancel_ns) const {
    const Call& call = *planned.recorded;
    const int64_t seen_ns = cancel_ns - connection_.downstream_rtt_ns;
    const auto wait_for = [&](int64_t time_ns) {
      cancel.think_ns = std::min(cancel.think_ns, std::max<int64_t>(0, seen_ns - time_ns));
    };
    if (call.first_byte_ns >= 0 && call.first_byte_ns < seen_ns) {
      planned.cancel_needs_headers = true;
      wait_for(call.first_byte_ns);
    }
    for (const auto& message : call.responses) {
      if (message.last_byte_ns >= seen_ns) break;
      ++planned.cancel_needs_messages;
      wait_for(message.last_byte_ns);
    }
  }

  const http2::RecordedConnection& connection_;
  const Policy& policy_;
  int64_t last_ns_;
  Session session_;
};

}  // namespace

bool PlannedCall::cut() const {
  return recorded->ended_by == EndedBy::client_reset || recorded->ended_by == EndedBy::client_close ||
         recorded->ended_by == EndedBy::still_open;
}

Session make_session(const http2::RecordedConnection& connection, const Policy& policy) {
  return SessionMaker(connection, policy).make();
}

Plan make_plan(const http2::RecordedCapture& capture, const Policy& policy) {
  Plan plan;
  for (const auto& connection : capture.connections) {
    if (!connection.calls.empty()) plan.sessions.push_back(make_session(connection, policy));
  }
  return plan;
}

std::optional<int64_t> parse_grpc_timeout(std::string_view text) {
  if (text.size() < 2 || text.size() > 9) return std::nullopt;  // at most eight digits and a unit
  int64_t unit_ns = 0;
  switch (text.back()) {
    case 'H': unit_ns = 3'600'000'000'000; break;
    case 'M': unit_ns = 60'000'000'000; break;
    case 'S': unit_ns = 1'000'000'000; break;
    case 'm': unit_ns = 1'000'000; break;
    case 'u': unit_ns = 1'000; break;
    case 'n': unit_ns = 1; break;
    default: return std::nullopt;
  }
  int64_t count = 0;
  const std::string digits(text.substr(0, text.size() - 1));
  const auto* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, count);
  if (error != std::errc() || end != last || count < 0) return std::nullopt;
  // 99999999H does not fit into 64 bits of nanoseconds.
  constexpr int64_t kForEver = INT64_MAX;
  return count > kForEver / unit_ns ? kForEver : count * unit_ns;
}

}  // namespace ztape::replay
