#include "replay/answer.h"

#include <algorithm>
#include <tuple>

#include "proto/method_table.h"
#include "replay/binary_metadata.h"

namespace ztape::replay {
namespace {

constexpr uint32_t kCancel = 0x8;  // RFC 9113, section 7

bool from_server(const http2::Frame& frame, uint8_t type) {
  return frame.direction == Direction::server_to_client && frame.type == type;
}

// Lays the recorded DATA frames over the messages. False when they do not fit (padding, or no frames kept).
bool cut_by_frames(const http2::Call& call, Answer& answer) {
  std::vector<const http2::Frame*> frames;
  uint64_t frame_bytes = 0;
  for (const auto& frame : call.frames) {
    if (!from_server(frame, http2::kData)) continue;
    if (frame.flags & http2::kPadded) return false;
    frames.push_back(&frame);
    frame_bytes += frame.length;
  }
  uint64_t message_bytes = 0;
  for (const auto& message : call.responses) message_bytes += kMessagePrefixBytes + message.length;
  if (frame_bytes < message_bytes || frames.empty()) return false;

  std::size_t frame = 0;
  uint32_t used = 0;
  for (std::size_t i = 0; i < answer.messages.size(); ++i) {
    uint64_t left = kMessagePrefixBytes + call.responses[i].length;
    auto& pieces = answer.messages[i].pieces;
    while (left > 0) {
      const auto room = frames[frame]->length - used;
      const auto taken = static_cast<uint32_t>(std::min<uint64_t>(room, left));
      pieces.push_back({static_cast<uint32_t>(frame), taken});
      left -= taken;
      used += taken;
      if (used == frames[frame]->length && left > 0) {
        ++frame;
        used = 0;
      }
    }
    // An empty DATA frame is part of what a server did; it stays with the message before it.
    while (frame + 1 < frames.size() && used == frames[frame]->length) {
      ++frame;
      used = 0;
      if (frames[frame]->length > 0) break;
      if (!(frames[frame]->flags & http2::kEndStream)) pieces.push_back({static_cast<uint32_t>(frame), 0});
    }
  }
  for (const auto* each : frames) answer.frame_ns.push_back(each->last_byte_ns);
  return true;
}

void cut_by_messages(const http2::Call& call, Answer& answer) {
  for (std::size_t i = 0; i < answer.messages.size(); ++i) {
    answer.messages[i].pieces = {
        {static_cast<uint32_t>(i), static_cast<uint32_t>(kMessagePrefixBytes + call.responses[i].length)}};
    answer.frame_ns.push_back(call.responses[i].last_byte_ns);
  }
}

// Of the client's END_STREAM; -1 when it never came. (Call::request_end_ns also knows a cancellation.)
int64_t end_of_request(const http2::Call& call) {
  for (const auto& frame : call.frames) {
    const bool may_end = frame.type == http2::kHeaders || frame.type == http2::kData;
    if (frame.direction == Direction::client_to_server && may_end && (frame.flags & http2::kEndStream)) {
      return frame.last_byte_ns;
    }
  }
  return -1;
}

int64_t time_of_trailers(const http2::Call& call) {
  int64_t last_ns = call.end_ns;
  for (const auto& frame : call.frames) {
    if (from_server(frame, http2::kHeaders)) last_ns = frame.last_byte_ns;
  }
  return last_ns;
}

bool decoded(const std::vector<http2::Message>& messages) {
  return std::all_of(messages.begin(), messages.end(), [](const auto& message) { return message.error.empty(); });
}

}  // namespace

void fit_pieces(AnswerMessage& message) {
  uint64_t wanted = kMessagePrefixBytes + message.body.size();
  for (auto& piece : message.pieces) {
    piece.length = static_cast<uint32_t>(std::min<uint64_t>(piece.length, wanted));
    wanted -= piece.length;
  }
  if (wanted == 0) return;
  if (message.pieces.empty()) message.pieces.push_back({});
  auto last = std::find_if(message.pieces.rbegin(), message.pieces.rend(),
                           [](const AnswerPiece& piece) { return piece.length > 0; });
  if (last == message.pieces.rend()) last = message.pieces.rbegin();
  last->length += static_cast<uint32_t>(wanted);
}

bool answer_of(http2::Call&& call, Answer& answer) {
  if (call.began_earlier || call.path.empty() || !decoded(call.requests) || !decoded(call.responses)) return false;
  // An answer that is no gRPC can be given again when it has no body: all of it is in its one HEADERS frame.
  const bool only_headers = call.trailers_only && call.ended_by == http2::EndedBy::trailers;
  if (!call.unreadable_reason.empty() && !only_headers) return false;

  answer.connection = call.connection;
  answer.stream = call.stream;
  answer.path = call.path;
  answer.start_ns = call.start_ns;
  answer.request_end_ns = end_of_request(call);
  answer.headers_ns = call.first_byte_ns;
  answer.end_ns = call.end_ns;
  answer.interleaved = request_type(call.path) == nullptr && !call.requests.empty() && call.first_byte_ns >= 0 &&
                       (answer.request_end_ns < 0 || call.first_byte_ns < answer.request_end_ns);
  for (auto& request : call.requests) {
    answer.requests.push_back(std::move(request.body));
    answer.request_ns.push_back(request.last_byte_ns);
  }
  for (auto& response : call.responses) answer.messages.push_back({std::move(response.body), {}});
  if (!cut_by_frames(call, answer)) {
    for (auto& message : answer.messages) message.pieces.clear();
    cut_by_messages(call, answer);
  }
  for (auto& message : answer.messages) fit_pieces(message);

  answer.headers = std::move(call.response_headers);
  to_base64(answer.headers);
  if (call.ended_by == http2::EndedBy::trailers) {
    answer.trailers = std::move(call.trailers);
    to_base64(answer.trailers);
    answer.trailers_ns = time_of_trailers(call);
  } else {
    answer.end = Answer::End::reset;
    const bool by_server = call.ended_by == http2::EndedBy::server_reset;
    answer.reset_code = by_server ? call.reset_code.value_or(kCancel) : kCancel;
  }
  // Without headers nothing can follow but trailers or a reset.
  const bool needs_headers =
      !answer.messages.empty() || (answer.end == Answer::End::end_stream && answer.trailers.empty());
  return !needs_headers || !answer.headers.empty();
}

LoadedAnswers load_answers(http2::RecordedCapture&& capture) {
  LoadedAnswers loaded;
  for (const auto& damage : capture.damage) loaded.incomplete.push_back(damage.message);
  for (auto& connection : capture.connections) {
    const auto name = "connection " + std::to_string(connection.id);
    if (connection.gap_bytes > 0) {
      loaded.incomplete.push_back(name + ": " + std::to_string(connection.gap_bytes) + " bytes were not recorded");
    }
    for (const auto& unreadable : connection.unreadable) loaded.incomplete.push_back(name + ": " + unreadable.reason);
    if (loaded.server_settings.empty()) loaded.server_settings = connection.server_settings;
    for (auto& call : connection.calls) {
      Answer answer;
      if (!answer_of(std::move(call), answer)) {
        ++loaded.unreadable_calls;
      } else if (answer.request_end_ns < 0 && !answer.interleaved) {
        ++loaded.unfinished_requests;
      } else {
        loaded.answers.push_back(std::move(answer));
      }
    }
  }
  std::stable_sort(loaded.answers.begin(), loaded.answers.end(), [](const Answer& a, const Answer& b) {
    return std::tie(a.start_ns, a.connection, a.stream) < std::tie(b.start_ns, b.connection, b.stream);
  });
  return loaded;
}

}  // namespace ztape::replay
