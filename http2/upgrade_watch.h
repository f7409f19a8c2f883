// Waits at the start of a connection that begins with HTTP/1 for the change to HTTP/2 (h2c, RFC 7540, section 3.2;
// RFC 9113 has dropped it, curl and nghttp still ask for it). Holds the bytes back until that is decided. Sans-I/O.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "http2/http1_reader.h"

namespace ztape::http2 {

class UpgradeWatch final : private Http1Sink {
 public:
  enum class State { watching, declined, upgraded };

  // More than this before the decision: declined.
  static constexpr std::size_t kMaxHeldBytes = 256 * 1024;

  struct Held {
    Direction direction = Direction::client_to_server;
    std::vector<uint8_t> bytes;
    int64_t time_ns = 0;
  };

  // The request of the upgrade: it is stream 1 (RFC 7540, section 3.2).
  struct Request {
    HeaderList fields;  // as HTTP/2 has them
    std::vector<Setting> settings;
    std::vector<uint8_t> body;
    int64_t head_ns = 0;
    int64_t end_ns = 0;
  };

  UpgradeWatch() : reader_(*this) {}

  State read(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const Request& request() const { return request_; }
  // How many bytes of each direction are HTTP/1; once upgraded.
  [[nodiscard]] uint64_t http1_bytes(Direction direction) const { return http1_bytes_[index(direction)]; }
  [[nodiscard]] uint64_t held_bytes(Direction direction) const;
  // All bytes, in the order of the calls.
  [[nodiscard]] const std::vector<Held>& held() const { return held_; }

 private:
  void on_head(Direction direction, const Http1Head& head, int64_t time_ns) override;
  void on_body(Direction direction, std::span<const uint8_t> piece, int64_t time_ns) override;
  void on_end(Direction direction, int64_t time_ns) override;
  void on_lost(Direction direction, const std::string& reason) override;
  bool take_request(const Http1Head& head);

  Http1Reader reader_;
  State state_ = State::watching;
  Request request_;
  bool request_whole_ = false;
  bool switching_ = false;
  uint64_t http1_bytes_[2] = {0, 0};
  std::vector<Held> held_;
  std::size_t held_bytes_ = 0;
};

}  // namespace ztape::http2
