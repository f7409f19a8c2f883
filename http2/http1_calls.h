// Makes calls out of an HTTP/1 connection: a request and its answer are one. gRPC-Web has its messages, of other bodies
// the beginning is kept. Sans-I/O.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "http2/body_reader.h"
#include "http2/http1_reader.h"

namespace ztape::http2 {

class Http1Calls final : public Http1Sink {
 public:
  using OnCall = std::function<void(Call&&)>;

  // `on_call` gets each call once: when its answer has ended, or at `close`.
  Http1Calls(ConnectionId connection, const CallBuilderOptions& options, OnCall on_call);

  void read(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns) {
    reader_.read(direction, bytes, time_ns);
  }
  void end(Direction direction, int64_t time_ns) { reader_.end(direction, time_ns); }
  void gap(Direction direction, const std::string& reason) { reader_.gap(direction, reason); }

  // What is still open ended so, at that time.
  void close(EndedBy how, int64_t time_ns);

  // The protocol that the connection changed to, as "h2c"; "" while it keeps to HTTP/1.
  [[nodiscard]] const std::string& changed_to() const { return changed_to_; }
  // Why nothing could be followed from some place on, or "".
  [[nodiscard]] const std::string& lost() const { return lost_; }

 private:
  struct OpenCall {
    Call call;
    std::optional<BodyReader> bodies[2];  // by direction
  };

  void on_head(Direction direction, const Http1Head& head, int64_t time_ns) override;
  void on_body(Direction direction, std::span<const uint8_t> piece, int64_t time_ns) override;
  void on_end(Direction direction, int64_t time_ns) override;
  void on_lost(Direction direction, const std::string& reason) override;
  void emit();

  ConnectionId connection_;
  CallBuilderOptions options_;
  OnCall on_call_;
  Http1Reader reader_;
  std::deque<OpenCall> open_;  // the first is answered next
  uint32_t requests_ = 0;
  std::string changed_to_;
  std::string lost_;
};

}  // namespace ztape::http2
