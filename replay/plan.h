// From a capture to sessions that can be played: what the wallet did, and what had to come before each of its steps.
//
// One session is one recorded connection. Pure; a plan points into the RecordedCapture it was made from, which must
// outlive it and must have been read with bodies.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "http2/recorded_connection.h"
#include "proto/method_table.h"

namespace ztape::replay {

// What may be sent to a target. SendTransaction is replayed only with `send_transactions`, whatever else is allowed.
struct Policy {
  std::set<std::string> allowed_methods = {};  // beyond those known to read: short names, or full paths
  bool send_transactions = false;
};

enum class StepKind : uint8_t { start, message, half_close, cancel };

// What the wallet did. It depends on the first `prefix` events of the session: all that had reached the wallet when it
// did this. `think_ns` counts from the last of them, or from the connection's opening when there is none.
struct Step {
  uint32_t call = 0;  // index into Session::calls
  StepKind kind = StepKind::start;
  uint32_t message = 0;  // of a `message`: its index in Call::requests
  uint32_t prefix = 0;
  int64_t think_ns = 0;
  int64_t since_open_ns = 0;  // when the wallet did it, counted from the connection's opening
};

enum class EventKind : uint8_t { headers, message, end };

// What the server did. Events of skipped calls are met from the start; those of long-lived calls (Method::long_lived)
// are not here at all, they hold up nothing but their own cancel.
struct Event {
  uint32_t call = 0;
  EventKind kind = EventKind::headers;
  uint32_t message = 0;
  int64_t time_ns = 0;  // on the capture's clock
};

struct PlannedCall {
  const http2::Call* recorded = nullptr;
  std::string method;       // short name
  std::string skip_reason;  // why it is never sent, or ""
  bool unreadable = false;  // skipped because the capture does not have enough of it, not by policy
  bool long_lived = false;
  bool sends_transaction = false;  // sent at most once to each target
  // The recorded grpc-timeout. A call that the wallet gave up at that time is given up `deadline_ns` after its start
  // again: a deadline is no dependency and no think time.
  std::optional<int64_t> grpc_timeout_ns;
  std::optional<int64_t> deadline_ns;
  std::vector<uint32_t> events;  // indexes into Session::events, in order
  // Of a long-lived call: what of its own answer its cancel waits for.
  bool cancel_needs_headers = false;
  uint32_t cancel_needs_messages = 0;

  [[nodiscard]] bool skipped() const { return !skip_reason.empty(); }
  // The wallet ended it, not the server: its answer has no outcome, only what had come until then.
  [[nodiscard]] bool cut() const;
};

struct Session {
  const http2::RecordedConnection* connection = nullptr;
  std::vector<PlannedCall> calls;  // as RecordedConnection::calls
  std::vector<Step> steps;         // by time, so `prefix` never falls
  std::vector<Event> events;       // by time
};

struct Plan {
  std::vector<Session> sessions;  // connections without calls are left out
};

Plan make_plan(const http2::RecordedCapture& capture, const Policy& policy);

// The same for one connection (tests, and calls that ztape itself makes).
Session make_session(const http2::RecordedConnection& connection, const Policy& policy);

// "10S", "999m", ... (gRPC over HTTP/2, "Timeout"). nullopt: not a timeout.
std::optional<int64_t> parse_grpc_timeout(std::string_view text);

}  // namespace ztape::replay
