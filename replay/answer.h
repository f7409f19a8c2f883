// A recorded answer, taken apart so that it can be changed and given again: headers, messages with the places where the
// recorded DATA frames cut them, trailers or the lack of them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "http2/call.h"
#include "http2/recorded_connection.h"
#include "proto/words.h"

namespace ztape::replay {

// A run of a message's bytes on the wire (prefix included) that stood in one recorded DATA frame.
struct AnswerPiece {
  uint32_t frame = 0;   // index into Answer::frame_ns
  uint32_t length = 0;  // bytes; 0 for an empty DATA frame after the message
};

struct AnswerMessage {
  std::string body;                 // decompressed; always sent without compression
  std::vector<AnswerPiece> pieces;  // their lengths add up to kMessagePrefixBytes + body.size()
};

// gRPC over HTTP/2, "Length-Prefixed-Message": the compressed flag and the length.
inline constexpr std::size_t kMessagePrefixBytes = 5;

// All times are on the capture's clock, in nanoseconds.
struct Answer {
  enum class End {
    end_stream,  // with the trailers, or without any
    reset,       // `reset_code`: the server's own, or CANCEL for an answer that was never finished
  };

  ConnectionId connection = 0;
  uint32_t stream = 0;
  std::string path;
  std::vector<std::string> requests;  // bodies, decompressed
  std::vector<int64_t> request_ns;    // when each was whole
  int64_t start_ns = 0;
  int64_t request_end_ns = -1;  // -1: the client never ended its side

  http2::HeaderList headers;  // empty: trailers only, or no answer at all
  int64_t headers_ns = 0;
  std::vector<AnswerMessage> messages;
  std::vector<int64_t> frame_ns;  // of each recorded DATA frame: its last byte
  http2::HeaderList trailers;
  int64_t trailers_ns = 0;
  End end = End::end_stream;
  uint32_t reset_code = 0;
  int64_t end_ns = 0;

  // The answer began before the request was complete, and the method is none whose request is known to come first:
  // it is given message by message, as it was recorded.
  bool interleaved = false;
};

// Gives a message's pieces the length of its (new) body: the last piece takes up the difference; what is too long is
// cut from the end.
void fit_pieces(AnswerMessage& message);

struct LoadedAnswers {
  std::vector<Answer> answers;                  // by the time their request started, over all connections
  std::vector<http2::Setting> server_settings;  // of the first connection that has any
  uint64_t unreadable_calls = 0;                // left out: headers or messages could not be read
  uint64_t unfinished_requests = 0;             // left out: no server could know what was asked
  std::vector<std::string> incomplete;          // sentences: what the capture lacks
};

// Wants a capture read with keep_bodies and keep_frames. The bodies are moved out of it.
LoadedAnswers load_answers(http2::RecordedCapture&& capture);

// Exposed for tests: one call. False: the call cannot be answered again.
bool answer_of(http2::Call&& call, Answer& answer);

}  // namespace ztape::replay
