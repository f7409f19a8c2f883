// Follows one connection's bytes and makes the index records and the counts of calls out of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "http2/call_builder.h"
#include "http2/connection_reader.h"
#include "http2/fan_out.h"
#include "http2/index_sink.h"
#include "proto/words.h"
#include "proxy/authority_watch.h"
#include "proxy/call_counts.h"

namespace ztape::proxy {

class Tap {
 public:
  // `append` takes each index record; `counts` and `authorities` must outlive the tap.
  Tap(ConnectionId connection, http2::IndexSink::OnRecord append, CallCounts& counts, AuthorityWatch& authorities);
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  void read(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns);
  void gap(Direction direction, const std::string& reason);
  void end(Direction direction, int64_t time_ns);
  void close(int64_t time_ns);
  // Where the connection stands, but for the ends of its directions.
  void save(capture::ConnectionState& state) const;
  // Counts the calls that ended before that time, without waiting for what may still cross their end.
  void settle(int64_t time_ns) { builder_.settle(time_ns); }

 private:
  struct Requests final : http2::ReaderSink {
    Requests(ConnectionId of, AuthorityWatch& watch) : connection(of), authorities(watch) {}
    void on_headers(const http2::Frame& frame, const http2::HeaderList& fields, bool end_stream,
                    bool readable) override;
    ConnectionId connection;
    AuthorityWatch& authorities;
  };

  http2::CallBuilder builder_;
  http2::IndexSink index_;
  Requests requests_;
  http2::FanOut fan_out_;
  http2::ConnectionReader reader_;
  std::optional<Direction> first_end_;
};

}  // namespace ztape::proxy
