// The inside of a TcpConnection; only the .cc files of net/ include this.
#pragma once

#include <uv.h>

#include <string>

#include "net/loop_handle.h"
#include "net/tcp.h"

namespace ztape::net {

struct TcpConnection::Impl final : LoopHandle {
  uv_tcp_t handle{};
  Loop& loop;
  TcpConnection::Handler* handler = nullptr;
  SocketOptions options;
  // As accept(2) told it: a peer that resets at once leaves a socket that does not know it any more.
  std::string accepted_from;
  bool closing = false;
  bool reading = false;
  bool read_ended = false;
  bool failure_told = false;
  // Given back by a reader of what comes first; delivered by a timer, never from inside start_reading().
  struct Unread {
    explicit Unread(Loop& loop) : timer(loop) {}
    Slice bytes;
    MonotonicTime time;
    Timer timer;
  };
  std::unique_ptr<Unread> unread;
  bool draining = false;  // nobody owns it any more: ends once all is acknowledged
  bool reset_when_drained = false;
  std::string write_error;
  std::unique_ptr<Timer> drain_timer;
  std::size_t drain_left = 0;
  MonotonicTime drain_progress;
  int64_t drain_pause_ns = 0;

  explicit Impl(Loop& owner);
  void close_handles() override;

  uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&handle); }
  int fd() const;
  void start_reading();
  void pause_reading();
  void start_uv_reading();
  void deliver_unread();
  void on_bytes(std::size_t size);
  void on_read_end(int status);
  void write(std::span<const Slice> pieces);
  void on_written(int status);
  void tell_failure(const std::string& system_error);
  void reset();
  void start_drain(bool reset_at_end);
  void continue_drain();
};

// "127.0.0.1:50000" of a socket's own or its peer's end; "" when it is not connected.
std::string local_text(const uv_tcp_t& handle);
std::string peer_text(const uv_tcp_t& handle);

}  // namespace ztape::net
