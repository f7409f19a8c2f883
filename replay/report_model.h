// What a replay found: filled by replay/, rendered by report/. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/histogram.h"
#include "proto/words.h"
#include "replay/compare.h"

namespace ztape::replay {

inline constexpr std::string_view kRecording = "recording";  // as a reference; no target may be named so

enum class Verdict { agree, differ, incomplete };

constexpr std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::agree: return "agree";
    case Verdict::differ: return "differ";
    case Verdict::incomplete: return "incomplete";
  }
  return "";
}

// Calls of one method at one target, over all measured rounds and wallets.
// calls = agree + differ + failed + not_compared.
struct MethodResult {
  std::string method;
  uint64_t calls = 0;
  uint64_t agree = 0;
  uint64_t differ = 0;
  uint64_t failed = 0;
  uint64_t not_compared = 0;  // the reference target had no answer
  uint64_t cancelled = 0;     // of those that agree or differ: cut where the wallet had cut them; no latency
  uint64_t messages = 0;
  uint64_t bytes = 0;  // of messages
  // Of calls that the server ended. From when the call should have started, and from when it was sent.
  Histogram end_from_due;
  Histogram end_from_sent;
  Histogram first_byte_from_sent;
};

struct TargetResult {
  std::string name;
  std::string url;
  std::vector<MethodResult> methods;         // in the order of the recording
  std::map<std::string, uint64_t> failures;  // reason: calls
  std::string unreachable;   // why no wallet could connect in a whole round, or ""; later ones were left out
  uint64_t connections = 0;  // that were made in measured rounds
  Histogram connect;
  uint64_t rounds = 0;  // measured
  // The realised load: calls in flight, between sent and end.
  uint64_t max_in_flight = 0;
  double in_flight_ns = 0;  // summed over calls
  int64_t busy_ns = 0;      // time that the rounds took
};

// A call whose answer differs. `reference` is "recording" or a target's name: left is its answer.
struct DifferingCall {
  std::string reference;
  std::string target;
  uint64_t connection = 0;  // in the capture
  uint32_t stream = 0;
  std::string method;
  std::string request_hex;
  AnswerDifference difference;  // the first time it was seen
  uint64_t count = 0;           // answers that differ
};

struct DifferenceExample {
  uint64_t connection = 0;
  uint32_t stream = 0;
  std::optional<uint64_t> message;
  std::string path;
  FieldValue left;
  FieldValue right;
};

// The same for all calls of one method and one field: `path` is a field path without indexes, or "http_status",
// "grpc_status", "grpc_message", "messages" (their number), "ended_by".
struct DifferenceGroup {
  std::string reference;
  std::string target;
  std::string method;
  std::string path;
  uint64_t count = 0;                       // answers that differ in it
  uint64_t calls = 0;                       // recorded calls
  std::vector<DifferenceExample> examples;  // the first three
};

struct Skipped {
  std::string method;
  std::string reason;
  uint64_t calls = 0;       // recorded calls
  bool unreadable = false;  // not by policy: the capture could not be read there
};

struct Coverage {
  uint64_t sessions = 0;
  uint64_t calls = 0;           // recorded
  uint64_t calls_replayed = 0;  // recorded calls that were sent at least once
  uint64_t methods_replayed = 0;
  uint64_t answers_not_empty = 0;  // of the recorded answers to those
};

struct Load {
  uint64_t clients = 0;
  uint64_t wallets = 0;  // played in a round: `clients`, or every session once
  uint64_t rounds = 0;
  uint64_t warmup = 0;
  std::string pace;
  double speed = 1;
};

struct Environment {
  std::string capture;
  std::string version;  // of ztape
  std::string kernel;
  std::string cpu;
  uint64_t cpus = 0;
  std::string congestion_control;
  WallTime started;
  int64_t duration_ns = 0;
};

struct ReplayReport {
  Verdict verdict = Verdict::agree;
  std::vector<std::string> incomplete;  // sentences: why it is incomplete
  std::string reference;
  std::vector<TargetResult> targets;
  std::vector<DifferingCall> differing_calls;
  std::vector<DifferenceGroup> differences;
  std::vector<Skipped> skipped;
  Coverage coverage;
  Load load;
  Environment environment;
};

}  // namespace ztape::replay
