#include "replay/compare.h"

#include <xxhash.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "http2/frame.h"
#include "proto/method_table.h"

namespace ztape::replay {

using http2::EndedBy;

bool Outcome::cut() const {
  return ended_by == EndedBy::client_reset || ended_by == EndedBy::client_close || ended_by == EndedBy::still_open;
}

Outcome outcome_of(const http2::Call& recorded) {
  return {recorded.http_status, recorded.grpc_status, recorded.grpc_message.value_or(""), recorded.ended_by,
          recorded.reset_code};
}

void ReplayedAnswer::add_message(std::string body) {
  const auto index = messages_++;
  bytes += body.size();
  if (index < recorded_->responses.size() && recorded_->responses[index].body == body) return;
  Kept kept;
  kept.hash = XXH3_64bits(body.data(), body.size());
  kept.whole = kept_bytes_ + body.size() <= kMaxKeptBytes;
  if (kept.whole) {
    kept_bytes_ += body.size();
    kept.body = std::move(body);
  }
  differing_.emplace(index, std::move(kept));
}

std::optional<std::string_view> ReplayedAnswer::kept_body(uint64_t index) const {
  const auto found = differing_.find(index);
  if (found == differing_.end() || !found->second.whole) return std::nullopt;
  return found->second.body;
}

// One side of a comparison: the recording, or a replayed answer as its difference from the recording.
struct AnswerView {
  const http2::Call& recorded;
  const ReplayedAnswer* replayed;  // nullptr: the recording itself
  Outcome outcome;
  uint64_t messages;

  explicit AnswerView(const http2::Call& call)
      : recorded(call), replayed(nullptr), outcome(outcome_of(call)), messages(call.responses.size()) {}
  AnswerView(const http2::Call& call, const ReplayedAnswer& answer)
      : recorded(call), replayed(&answer), outcome(answer.outcome), messages(answer.messages()) {
    const bool cancelled_by_server =
        outcome.ended_by == EndedBy::server_reset && outcome.reset_code == uint32_t{8} /* CANCEL, RFC 9113 */;
    if (cancelled_by_server && outcome_of(call).cut()) outcome.ended_by = EndedBy::client_reset;
  }

  // nullptr: the message is the recorded one.
  [[nodiscard]] const ReplayedAnswer::Kept* kept(uint64_t index) const {
    if (!replayed) return nullptr;
    const auto found = replayed->differing_.find(index);
    return found == replayed->differing_.end() ? nullptr : &found->second;
  }

  void add_differing(std::set<uint64_t>& indexes) const {
    if (!replayed) return;
    for (const auto& [index, unused] : replayed->differing_) indexes.insert(index);
  }

  // nullopt: it was too long to be kept.
  [[nodiscard]] std::optional<std::string_view> body(uint64_t index) const {
    const auto* own = kept(index);
    if (!own) return recorded.responses[index].body;
    if (!own->whole) return std::nullopt;
    return own->body;
  }
};

namespace {

bool same_message(const AnswerView& left, const AnswerView& right, uint64_t index) {
  const auto* left_kept = left.kept(index);
  const auto* right_kept = right.kept(index);
  if (!left_kept && !right_kept) return true;
  if (!left_kept || !right_kept) return false;  // one is the recorded message, the other is not
  if (left_kept->whole && right_kept->whole) return left_kept->body == right_kept->body;
  return left_kept->hash == right_kept->hash;
}

void compare_messages(const AnswerView& left, const AnswerView& right, AnswerDifference& found) {
  std::set<uint64_t> candidates;
  left.add_differing(candidates);
  right.add_differing(candidates);
  for (const auto index : candidates) {
    if (index >= std::min(left.messages, right.messages)) return;
    if (same_message(left, right, index)) continue;
    found.first_differing_message = index;
    const auto left_body = left.body(index);
    const auto right_body = right.body(index);
    if (left_body && right_body) {
      found.fields = diff_messages(response_type(left.recorded.path), *left_body, *right_body);
    } else {
      found.fields.push_back({"(message too long to be kept)", FieldValue(), FieldValue()});
    }
    return;
  }
}

std::string ending(const Outcome& outcome) {
  std::string text(name(outcome.ended_by));
  if (outcome.ended_by == EndedBy::server_reset && outcome.reset_code) {
    text = "reset " + http2::error_code_name(*outcome.reset_code);
  }
  return text;
}

template <typename T>
void pair_if_different(AnswerDifference::Pair<T>& pair, const T& left, const T& right) {
  if (left != right) pair.emplace(left, right);
}

AnswerDifference compare(const AnswerView& left, const AnswerView& right) {
  AnswerDifference found;
  compare_messages(left, right, found);
  const auto& left_outcome = left.outcome;
  const auto& right_outcome = right.outcome;
  const bool cut = left_outcome.cut() || right_outcome.cut();
  if (!cut || (left_outcome.http_status && right_outcome.http_status)) {
    pair_if_different(found.http_status, left_outcome.http_status, right_outcome.http_status);
  }
  if (cut) {
    // Up to the cancel only: a difference is an answer that ended by itself, and short.
    const bool left_short = !left_outcome.cut() && left.messages < right.messages;
    const bool right_short = !right_outcome.cut() && right.messages < left.messages;
    if (!left_short && !right_short) return found;
  }
  pair_if_different(found.grpc_status, left_outcome.grpc_status, right_outcome.grpc_status);
  pair_if_different(found.grpc_message, left_outcome.grpc_message, right_outcome.grpc_message);
  pair_if_different(found.messages, left.messages, right.messages);
  if (!cut) pair_if_different(found.ended_by, ending(left_outcome), ending(right_outcome));
  return found;
}

}  // namespace

bool AnswerDifference::any() const {
  return first_differing_message || http_status || grpc_status || grpc_message || messages || ended_by;
}

AnswerDifference compare_with_recording(const http2::Call& recorded, const ReplayedAnswer& replayed) {
  return compare(AnswerView(recorded), AnswerView(recorded, replayed));
}

AnswerDifference compare_answers(const http2::Call& recorded, const ReplayedAnswer& left, const ReplayedAnswer& right) {
  return compare(AnswerView(recorded, left), AnswerView(recorded, right));
}

std::string request_hex(const http2::Call& recorded) {
  std::string bytes;
  for (std::size_t i = 0; i < recorded.requests.size(); ++i) {
    const auto& body = recorded.requests[i].body;
    if (i > 0) {
      bytes += '\0';
      for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(body.size() >> shift);
    }
    bytes += body;
  }
  return to_hex(bytes);
}

}  // namespace ztape::replay
