// Are two answers to one recorded call the same: outcome, number and order of messages, their bytes, and by name the
// fields of the first message that differs. Pure.
//
// A replayed answer is held as what differs from the recording: an equal message costs nothing once it was compared.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http2/call.h"
#include "proto/message_diff.h"

namespace ztape::replay {

// Of one answer; of longer ones only a hash is kept, which still tells equal from different.
inline constexpr uint64_t kMaxKeptBytes = 1024 * 1024;

struct Outcome {
  std::optional<int> http_status;  // absent: no headers came
  std::optional<int> grpc_status;
  std::string grpc_message;  // percent-decoded; "" when absent: to a caller they are the same
  http2::EndedBy ended_by = http2::EndedBy::still_open;
  std::optional<uint32_t> reset_code;

  // The client ended the call: there is no outcome, only what had come until then.
  [[nodiscard]] bool cut() const;
};

Outcome outcome_of(const http2::Call& recorded);

class ReplayedAnswer {
 public:
  explicit ReplayedAnswer(const http2::Call& recorded) : recorded_(&recorded) {}

  // The next message of the answer.
  void add_message(std::string body);

  Outcome outcome;
  uint64_t bytes = 0;  // of messages, without prefixes

  [[nodiscard]] uint64_t messages() const { return messages_; }
  // Of a message that is not the recorded one, as long as it was kept.
  [[nodiscard]] std::optional<std::string_view> kept_body(uint64_t index) const;

 private:
  friend struct AnswerView;
  struct Kept {
    bool whole = false;  // `body` is there
    uint64_t hash = 0;   // XXH3 of the body
    std::string body;
  };

  const http2::Call* recorded_;
  uint64_t messages_ = 0;
  uint64_t kept_bytes_ = 0;
  std::map<uint64_t, Kept> differing_;  // by index: those that are not the recorded message of that index
};

// How two answers to one call differ: left is whose answers are right, right is the target. A pair is there only where
// its two sides differ.
struct AnswerDifference {
  template <typename T>
  using Pair = std::optional<std::pair<T, T>>;

  std::optional<uint64_t> first_differing_message;  // from 0
  std::vector<FieldDifference> fields;              // of that message
  Pair<std::optional<int>> http_status;
  Pair<std::optional<int>> grpc_status;
  Pair<std::string> grpc_message;
  Pair<uint64_t> messages;
  // How it ended, where one of them did not end with trailers: "trailers", "reset INTERNAL_ERROR", "server_close", ...
  Pair<std::string> ended_by;

  [[nodiscard]] bool any() const;
};

// Where a client cancelled (the wallet in the recording, or the replay at the same point), only what both sides said up
// to there is compared; an answer that ended short of that by itself is a difference. An answer that the server ends
// with RST_STREAM CANCEL counts as cancelled where the recording was (`ztape serve` ends unfinished recordings that
// way).
AnswerDifference compare_with_recording(const http2::Call& recorded, const ReplayedAnswer& replayed);
// Two targets' answers to the same call.
AnswerDifference compare_answers(const http2::Call& recorded, const ReplayedAnswer& left, const ReplayedAnswer& right);

// The request as reports show it: the bodies with their five-byte prefixes, without that of the first.
std::string request_hex(const http2::Call& recorded);

}  // namespace ztape::replay
