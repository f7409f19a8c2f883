// One connection of `ztape serve`: bytes in, writes out. Sans-I/O: an nghttp2 server session that answers out of an
// AnswerBook.
//
// Memory is bounded whatever the client does: a write is made only when next_write() is called, requests are held up to
// kMaxRequestBytes each and kMaxHeldBytes together, and streams beyond kMaxOpenStreams are refused.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "http2/frame.h"
#include "proto/words.h"
#include "replay/answer_book.h"

namespace ztape::replay {

enum class DelayMode { none, recorded, fixed };

struct ServeOptions {
  WriteMode writes = WriteMode::recorded;
  DelayMode delay = DelayMode::none;
  int64_t delay_ns = 0;  // DelayMode::fixed: before each answer
  bool nodelay = true;   // TCP_NODELAY on accepted connections
  bool accept_send_transaction = false;
  std::vector<http2::Setting> settings;  // the server's first SETTINGS, as recorded
};

// Over all connections of a server.
struct ServeCounts {
  uint64_t connections = 0;
  std::map<std::string, uint64_t, std::less<>> calls;  // answered from the capture, by path
  uint64_t unknown_requests = 0;                       // not in the capture
  uint64_t refused_requests = 0;                       // SendTransaction
  uint64_t bad_requests = 0;                           // not gRPC, or too large
};

// A line for the log: what was asked that is not in the capture, and what a client did wrong. Wire text in it is
// escaped.
using ServeLog = std::function<void(const std::string&)>;

inline constexpr std::size_t kMaxRequestBytes = 16 * 1024 * 1024;  // of one call
inline constexpr std::size_t kMaxHeldBytes = 64 * 1024 * 1024;     // of all calls of a connection that wait for more
inline constexpr std::size_t kMaxOpenStreams = 10'000;
inline constexpr std::size_t kMaxWriteBytes = 1024 * 1024;
inline constexpr uint64_t kMaxLoggedRequests = 100;  // the rest is only counted

class ServeSession {
 public:
  // Everything referred to must outlive the session; `options.settings` is used in the constructor only.
  ServeSession(const AnswerBook& book, const ServeOptions& options, ServeCounts& counts, const ServeLog& log);
  ~ServeSession();
  ServeSession(const ServeSession&) = delete;
  ServeSession& operator=(const ServeSession&) = delete;

  // False: the client broke the protocol; the session sends its GOAWAY and is finished.
  bool receive(std::span<const uint8_t> bytes, MonotonicTime now);

  // What the next write(2) has to send; nullopt: nothing is ready at that time.
  std::optional<std::string> next_write(MonotonicTime now);
  // When something will be ready without further bytes of the client; nullopt: never.
  [[nodiscard]] std::optional<MonotonicTime> next_due() const;

  // GOAWAY, and no new calls.
  void shut_down();
  // Nothing will be sent or read any more.
  [[nodiscard]] bool finished() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ztape::replay
