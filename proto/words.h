// The words every layer uses (docs/design.md, "Words"): a direction's name is the same in the file, in JSON and here.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ztape {

enum class Direction : uint8_t { client_to_server = 0, server_to_client = 1 };

inline constexpr std::array kDirections{Direction::client_to_server, Direction::server_to_client};

constexpr std::size_t index(Direction direction) {
  return static_cast<std::size_t>(direction);
}

constexpr Direction opposite(Direction direction) {
  return direction == Direction::client_to_server ? Direction::server_to_client : Direction::client_to_server;
}

constexpr std::string_view name(Direction direction) {
  return direction == Direction::client_to_server ? "client_to_server" : "server_to_client";
}

// A connection's number in its capture, from 1.
using ConnectionId = uint64_t;

// CLOCK_MONOTONIC, in nanoseconds. A type of its own, so that it is never taken for wall time.
struct MonotonicTime {
  int64_t ns = 0;
  friend constexpr auto operator<=>(MonotonicTime, MonotonicTime) = default;
  friend constexpr int64_t operator-(MonotonicTime a, MonotonicTime b) { return a.ns - b.ns; }
};

// CLOCK_REALTIME, in nanoseconds since 1970-01-01 UTC.
struct WallTime {
  int64_t unix_ns = 0;
  friend constexpr auto operator<=>(WallTime, WallTime) = default;
};

}  // namespace ztape
