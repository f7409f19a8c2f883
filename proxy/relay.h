// One connection pair as a pure state machine: events in, actions out. No socket, no clock, no file, no logger.
//
// What one read brought goes out in one Send, before it is recorded. A side whose queue is above kHighWaterBytes stops
// the reading of the other one until it has drained. An end is passed on as what it was: a FIN as a half-close, after
// which the other direction goes on; a reset as a reset, after what was queued before it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/slab.h"
#include "proto/words.h"

namespace ztape::proxy {

// Above this a queue stops the reader that feeds it; one more read may come on top of it.
inline constexpr std::size_t kHighWaterBytes = 512 * 1024;

// Downstream is the wallet's side, upstream the indexer's.
enum class Side : uint8_t { downstream = 0, upstream = 1 };

constexpr std::size_t index(Side side) {
  return static_cast<std::size_t>(side);
}
constexpr Side opposite(Side side) {
  return side == Side::downstream ? Side::upstream : Side::downstream;
}
// The direction of the bytes that are read from `side`.
constexpr Direction direction_from(Side side) {
  return side == Side::downstream ? Direction::client_to_server : Direction::server_to_client;
}
std::string_view name(Side side);

// How a direction ended, as capture.proto's End.
enum class DirectionEnd : uint8_t { fin = 1, reset = 2, failed = 3 };

// A FIN over TLS that the sender did not announce: the bytes before it may not be all it sent.
inline constexpr std::string_view kNoCloseNotify = "no close_notify";

namespace event {

struct Connected {
  MonotonicTime time;
};
// A side did not come up: no connection, or no TLS handshake.
struct OpenFailed {
  Side side;
  std::string error;  // "127.0.0.1:1: connection refused"
  MonotonicTime time;
};
struct Bytes {
  Side from;
  net::Slice bytes;
  MonotonicTime time;
};
struct Eof {
  Side from;
  MonotonicTime time;
  bool truncated = false;  // over TLS: without a close_notify
};
struct Failed {
  Side from;
  std::string system_error;  // "ECONNRESET"
  MonotonicTime time;
};
// After a Send: how many bytes wait now, beyond what the kernel took.
struct Queued {
  Side to;
  std::size_t bytes;
};
struct Drained {
  Side to;
};
// Only where the traffic is to wait for the recorder.
struct RecorderFull {};
struct RecorderRoom {};
// The proxy ends.
struct Stop {
  MonotonicTime time;
};

}  // namespace event

using Event = std::variant<event::Connected, event::OpenFailed, event::Bytes, event::Eof, event::Failed, event::Queued,
                           event::Drained, event::RecorderFull, event::RecorderRoom, event::Stop>;

namespace action {

struct StartReading {
  Side from;
};
struct PauseReading {
  Side from;
};
struct Send {
  Side to;
  net::Slice bytes;
};
struct HalfClose {
  Side to;
  bool truncated = false;  // over TLS: without a close_notify, for there was none
};
// These end a side for good; no event of it comes any more.
struct CloseAfterDrain {
  Side side;
};
struct ResetAfterDrain {
  Side side;
};
struct Drop {  // a side that failed by itself
  Side side;
};
struct RecordChunk {
  Direction direction;
  uint64_t offset;
  net::Slice bytes;
  MonotonicTime time;
};
struct RecordEnd {
  Direction direction;
  uint64_t offset;
  DirectionEnd end;
  std::string error;  // the system's name where `end` is failed; kNoCloseNotify where that is missing
  MonotonicTime time;
};
// The pair is over. Comes before the actions that end the sides, and is followed by nothing else after them.
struct RecordClose {
  std::optional<Side> first_side;  // whose end came first; none: the recorder itself
  std::string error;               // "" after two FINs
  MonotonicTime time;
};

}  // namespace action

using Action =
    std::variant<action::StartReading, action::PauseReading, action::Send, action::HalfClose, action::CloseAfterDrain,
                 action::ResetAfterDrain, action::Drop, action::RecordChunk, action::RecordEnd, action::RecordClose>;

class Relay {
 public:
  // Appends what is to be done, in order, to `actions`. Events after the end are ignored.
  void handle(Event event, std::vector<Action>& actions);

  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] uint64_t bytes(Direction direction) const { return offset_[ztape::index(direction)]; }
  // How often a full queue stopped the reading of that side.
  [[nodiscard]] uint64_t pauses(Side side) const { return pauses_[index(side)]; }

 private:
  enum HoldReason : uint8_t { kNotConnected = 1, kQueueFull = 2, kRecorderFull = 4, kEnded = 8 };

  void on(event::Connected&& event);
  void on(event::OpenFailed&& event);
  void on(event::Bytes&& event);
  void on(event::Eof&& event);
  void on(event::Failed&& event);
  void on(event::Queued&& event);
  void on(event::Drained&& event);
  void on(event::RecorderFull&& event);
  void on(event::RecorderRoom&& event);
  void on(event::Stop&& event);

  void hold(Side side, HoldReason reason);
  void let_go(Side side, HoldReason reason);
  void note_end(Side side);
  void finish(std::string error, MonotonicTime time);

  std::vector<Action>* actions_ = nullptr;  // of the handle() under way
  uint8_t held_[2] = {kNotConnected, kNotConnected};
  bool ended_[2] = {false, false};  // by the side that would send
  uint64_t offset_[2] = {0, 0};
  uint64_t pauses_[2] = {0, 0};
  std::optional<Side> first_side_;
  bool finished_ = false;
};

}  // namespace ztape::proxy
