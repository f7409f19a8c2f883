// Cuts the DATA of one direction of a stream into length-prefixed gRPC messages. Sans-I/O.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "http2/call.h"

namespace ztape::http2 {

class MessageReader {
 public:
  using OnMessage = std::function<void(Message&&)>;

  // `encoding` is the grpc-encoding of this direction ("identity" when absent). `web`: a gRPC-Web trailer frame may
  // come too, as a Message with `trailers`, which has its body even where bodies are not kept.
  MessageReader(bool keep_bodies, uint64_t max_body_bytes, std::string encoding, bool web = false);

  // "" or why the bytes are no gRPC messages; from then on they are only counted, in tail_bytes().
  const std::string& read(std::span<const uint8_t> bytes, int64_t time_ns, const OnMessage& on_message);

  // Of a message that is still arriving: what has come of its 5 bytes of prefix, and what is left of its body.
  struct Position {
    std::string prefix;
    uint64_t body_left = 0;
    int64_t first_byte_ns = 0;
  };
  // nullopt: what came is no message.
  [[nodiscard]] std::optional<Position> position() const;
  // Goes on from there; what came of the message before is not kept. False: there is no such position.
  bool go_on_from(const Position& position);

  // Bytes of a message that is not whole, prefix included, or of what is no message.
  [[nodiscard]] uint64_t tail_bytes() const { return tail_bytes_; }

 private:
  static constexpr std::size_t kPrefixBytes = 5;
  static constexpr uint8_t kTrailersFlag = 0x80;
  static constexpr uint32_t kMaxTrailersBytes = 64 * 1024;

  [[nodiscard]] uint64_t kept_bytes() const;  // how long a body may be to be kept
  bool read_prefix();
  void finish_message(const OnMessage& on_message);

  bool keep_bodies_;
  uint64_t max_body_bytes_;
  std::string encoding_;
  bool web_;
  std::string fault_;
  std::array<uint8_t, kPrefixBytes> prefix_{};
  std::size_t prefix_bytes_ = 0;
  uint64_t body_left_ = 0;
  uint64_t tail_bytes_ = 0;
  Message message_;
  bool beginning_missing_ = false;  // of message_'s body
};

}  // namespace ztape::http2
