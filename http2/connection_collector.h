// Collects one connection while its records pass: its calls, frames, reads, and what it speaks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "http2/call_builder.h"
#include "http2/connection_reader.h"
#include "http2/fan_out.h"
#include "http2/first_bytes.h"
#include "http2/http1_calls.h"
#include "http2/recorded_connection.h"

namespace ztape::http2 {

class ConnectionCollector final : private ReaderSink {
 public:
  // With a watcher, calls, frames and reads go there and are not kept. It must outlive this.
  ConnectionCollector(ConnectionId id, const CallBuilderOptions& options, CaptureWatcher* watcher);

  void open(const capture::ConnectionOpen& open);
  void chunk(const capture::Chunk& chunk);
  void gap(const capture::Gap& gap);
  void state(const capture::ConnectionState& state);
  void tcp_info(const capture::TcpInfo& info);
  void close(const capture::ConnectionClose& close);

  // CallBuilder::settle
  void settle(int64_t time_ns) { builder_.settle(time_ns); }
  // Gives out the calls that are still open. Once.
  void end_calls();
  // The calls by start, and those that the connection's end ended.
  RecordedConnection take();

  [[nodiscard]] bool closed() const { return connection_.close_ns >= 0; }
  [[nodiscard]] const RecordedConnection& connection() const { return connection_; }

 private:
  void on_frame(const Frame& frame) override;
  void on_headers(const Frame& frame, const HeaderList& fields, bool end_stream, bool readable) override;
  void on_settings(const Frame& frame, std::span<const Setting> settings) override;
  void on_window_update(const Frame& frame, uint32_t increment) override;
  void on_unreadable(const Unreadable& lost) override;

  void on_call(Call&& call);
  void learn_protocol(const capture::Chunk& chunk);

  RecordedConnection connection_;
  CallBuilderOptions options_;
  CaptureWatcher* watcher_;
  CallBuilder builder_;
  FanOut fan_out_;
  ConnectionReader reader_;
  std::unique_ptr<Http1Calls> http1_;  // of a connection that begins with HTTP/1; with not_only_grpc
  uint64_t next_offset_[2] = {0, 0};   // by direction
  bool headers_seen_ = false;
  bool settings_seen_[2] = {false, false};
  bool frames_seen_[2] = {false, false};
  capture::Side first_end_ = capture::SIDE_UNKNOWN;
  bool has_traffic_ = false;  // a chunk or a state
  int64_t last_ns_ = 0;
};

}  // namespace ztape::http2
