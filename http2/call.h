// A call: one RPC on one stream, as both directions of a recording tell it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http2/frame.h"
#include "proto/words.h"

namespace ztape::http2 {

// One length-prefixed gRPC message (gRPC over HTTP/2, "Length-Prefixed-Message").
struct Message {
  int64_t first_byte_ns = 0;
  int64_t last_byte_ns = 0;
  bool compressed = false;  // the flag on the wire
  uint32_t length = 0;      // on the wire, without the 5-byte prefix
  // The body, decompressed where `compressed` and the encoding is known; empty when bodies are not kept.
  std::string body;
  std::string error;      // why the body could not be decompressed, or ""
  bool trailers = false;  // the trailer frame of a gRPC-Web answer; it is in no list of messages
};

// What a call's bodies are, by their content-type. gRPC-Web is gRPC with its trailers in the body
// (github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md); its text form is base64.
enum class Content { grpc, grpc_web, grpc_web_text, other };

std::string_view name(Content content);  // "grpc", "grpc-web", "grpc-web-text", "http"
Content content_of(const HeaderList& fields);

enum class HttpVersion { http1_0, http1_1, http2 };

std::string_view name(HttpVersion version);  // "1.0", "1.1", "2"

// The first event that ended the call.
enum class EndedBy { still_open, trailers, client_reset, server_reset, goaway, client_close, server_close };

std::string_view name(EndedBy ended_by);

struct Call {
  ConnectionId connection = 0;
  uint32_t stream = 0;  // of HTTP/1, which has none: the how manieth request of its connection it is, from 1
  HttpVersion http_version = HttpVersion::http2;
  Content content = Content::other;  // of the request
  std::string path;                  // ":path"; "" when the request's headers could not be read
  HeaderList request_headers;
  HeaderList response_headers;  // of a trailers-only answer: empty, everything is in `trailers`
  HeaderList trailers;
  bool trailers_only = false;

  // On the capture's clock. -1: has not happened.
  int64_t start_ns = -1;        // last byte of the request's HEADERS
  int64_t request_end_ns = -1;  // END_STREAM of the client
  int64_t first_byte_ns = -1;   // last byte of the first HEADERS of the answer
  int64_t end_ns = -1;

  std::vector<Message> requests;
  std::vector<Message> responses;
  uint64_t request_message_count = 0;
  uint64_t response_message_count = 0;
  uint64_t request_bytes = 0;  // sum of Message::length
  uint64_t response_bytes = 0;
  uint64_t request_tail_bytes = 0;  // of a message that never became whole
  uint64_t response_tail_bytes = 0;
  // The first kKeptBeginningBytes of a body that is not gRPC; with CallBuilderOptions::not_only_grpc.
  std::string request_beginning;
  std::string response_beginning;

  std::optional<int> http_status;
  std::optional<int> grpc_status;
  std::optional<std::string> grpc_message;  // percent-decoded; absent and empty are told apart
  std::optional<uint32_t> reset_code;
  EndedBy ended_by = EndedBy::still_open;
  bool end_unseen = false;  // it was under way when the server's direction could be followed no further
  // It was open before this file, or before what is there again behind a gap. Counts, times and headers are those of
  // the whole call; the messages that came before are not here.
  bool began_earlier = false;
  std::string unreadable_reason;  // what of this call could not be followed, or ""

  std::vector<Frame> frames;  // of this stream, both directions, in order; empty when frames are not kept
};

inline constexpr std::size_t kKeptBeginningBytes = 4096;

// The answer says so, or it did not come, and not because the wallet did not want it any more.
bool is_error(const Call& call);

// grpc-message is percent-encoded (gRPC over HTTP/2, "Status-Message"); broken escapes stay as they are.
std::string percent_decode(std::string_view text);

// Takes grpc-status and grpc-message, as far as they are there, out of a call's trailers, or out of the headers of an
// answer that has nothing else.
void read_grpc_status(const HeaderList& fields, Call& call);

// Of the headers of an answer whose content-type is another: "the answer is text/html, not gRPC".
std::string why_not_grpc(const HeaderList& fields);

}  // namespace ztape::http2
