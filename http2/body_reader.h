// What the body of one direction of a call brings: gRPC messages, gRPC-Web messages and trailers, or something else, of
// which the beginning is kept. Sans-I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "http2/call_builder.h"
#include "http2/message_reader.h"
#include "proto/capture.pb.h"

namespace ztape::http2 {

class BodyReader {
 public:
  // By the direction's header fields.
  BodyReader(Direction direction, const HeaderList& fields, const CallBuilderOptions& options);

  // The body's next bytes, and what they bring into `call`.
  void read(Call& call, std::span<const uint8_t> bytes, int64_t time_ns);
  // No more will come.
  void finish(Call& call);

  // Where the body stands, with the counts of `call`; and the reverse, from its beginning on. (call_state.cc)
  void save(const Call& call, capture::ConnectionState::Body& out) const;
  void restore(Call& call, const capture::ConnectionState::Body& body);

  [[nodiscard]] bool has_messages() const { return messages_.has_value(); }

 private:
  void take(Call& call, Message&& message);
  std::string& beginning(Call& call) const { return request_ ? call.request_beginning : call.response_beginning; }
  uint64_t& message_count(Call& call) const {
    return request_ ? call.request_message_count : call.response_message_count;
  }
  uint64_t& tail_bytes(Call& call) const { return request_ ? call.request_tail_bytes : call.response_tail_bytes; }

  bool request_;
  bool keep_beginning_;
  bool keep_messages_;
  bool keep_headers_;
  bool base64_ = false;
  bool faulty_ = false;
  std::string undecoded_;                  // of base64: fewer than four characters
  std::optional<MessageReader> messages_;  // none: the body is not gRPC
};

}  // namespace ztape::http2
