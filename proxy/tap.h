// Follows one connection's bytes and makes the index records and the counts of calls out of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "http2/call_builder.h"
#include "http2/connection_reader.h"
#include "http2/fan_out.h"
#include "http2/index_sink.h"
#include "proto/words.h"

namespace ztape::proxy {

// How often which call ended how.
class CallCounts {
 public:
  struct Key {
    std::string path;  // as on the wire, not made safe to show
    std::optional<int> grpc_status;
    http2::EndedBy ended_by = http2::EndedBy::still_open;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  void add(const http2::Call& call);
  [[nodiscard]] const std::map<Key, uint64_t>& rows() const { return rows_; }
  [[nodiscard]] uint64_t total() const { return total_; }

 private:
  std::map<Key, uint64_t> rows_;
  uint64_t total_ = 0;
};

class Tap {
 public:
  // `append` takes each index record; `counts` must outlive the tap.
  Tap(ConnectionId connection, http2::IndexSink::OnRecord append, CallCounts& counts);
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  void read(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns);
  void gap(Direction direction, const std::string& reason);
  void end(Direction direction, int64_t time_ns);
  void close(int64_t time_ns);

 private:
  http2::CallBuilder builder_;
  http2::IndexSink index_;
  http2::FanOut fan_out_;
  http2::ConnectionReader reader_;
  std::optional<Direction> first_end_;
};

}  // namespace ztape::proxy
