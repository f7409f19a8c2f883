// Makes calls out of what a ConnectionReader finds. One builder a connection. Sans-I/O.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "http2/call.h"
#include "http2/connection_reader.h"
#include "proto/capture.pb.h"

namespace ztape::http2 {

struct CallBuilderOptions {
  bool keep_bodies = false;   // Message::body
  bool keep_frames = false;   // Call::frames
  bool keep_headers = true;   // false: Call::request_headers, response_headers and trailers stay empty
  bool keep_messages = true;  // false: only counts; Call::requests and responses stay empty
  uint64_t max_message_bytes = 256ull * 1024 * 1024;  // a longer body is not kept
  // gRPC-Web is read into messages, and of other bodies the beginning is kept. false: their bytes are only counted.
  bool not_only_grpc = false;
  bool keep_for_state = false;  // the headers of open calls, so that save() has them
};

// Sees calls while they are under way.
class CallWatcher {
 public:
  virtual ~CallWatcher() = default;
  virtual void on_begun(const Call& call) = 0;  // its request's headers are there
  // Once for each that began: its outcome is known, or cannot be known any more (Call::end_unseen).
  virtual void on_over(const Call& call) = 0;
};

class CallBuilder final : public ReaderSink {
 public:
  using OnCall = std::function<void(Call&&)>;

  // `on_call` gets each call once: when nothing of it can follow any more, or at `close`. What was already under way
  // when one side reset the stream still counts to the call; its `ended_by` and `end_ns` stay those of the reset.
  CallBuilder(ConnectionId connection, CallBuilderOptions options, OnCall on_call);
  ~CallBuilder() override;

  // Before the first frame; must outlive the builder.
  void set_watcher(CallWatcher* watcher);

  // The server's direction has ended, by a FIN or a reset: no open call gets its end any more. What the client still
  // does, as resetting its streams in answer, does not change that.
  void server_ended(int64_t time_ns);

  // The connection is over: what is still open ended by `how` (client_close, server_close or still_open) at that time.
  void close(EndedBy how, int64_t time_ns);

  // Gives `on_call` the calls that ended before `time_ns`, without waiting for what may still cross their end.
  void settle(int64_t time_ns);

  // What is known of the streams, into the record's `streams`; and the reverse. Calls that were open here and are not
  // in the record ended in between: they are given out as they are. Those that are here and there go on with the
  // record's counts; the others of it began earlier. (call_state.cc)
  void save(capture::ConnectionState& out) const;
  void restore(const capture::ConnectionState& state);

  void on_frame(const Frame& frame) override;
  void on_headers(const Frame& frame, const HeaderList& fields, bool end_stream, bool readable) override;
  void on_data(const Frame& frame, std::span<const uint8_t> piece, int64_t time_ns) override;
  void on_window_update(const Frame& frame, uint32_t increment) override;
  void on_rst_stream(const Frame& frame, uint32_t error_code) override;
  void on_goaway(const Frame& frame, uint32_t last_stream, uint32_t error_code,
                 std::span<const uint8_t> debug_bytes) override;
  void on_unreadable(const Unreadable& lost) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ztape::http2
