// Follows one connection's bytes and makes the index records and the counts of calls out of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "http2/call_builder.h"
#include "http2/connection_reader.h"
#include "proto/words.h"

namespace ztape::capture {
class Record;
}

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

class Tap final : private http2::ReaderSink {
 public:
  using Append = std::function<void(const capture::Record&)>;

  // `append` takes each index record; `counts` must outlive the tap.
  Tap(ConnectionId connection, Append append, CallCounts& counts);
  ~Tap() override;
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  void read(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns);
  void gap(Direction direction, const std::string& reason);
  void end(Direction direction);
  void close(int64_t time_ns);

 private:
  void on_frame(const http2::Frame& frame) override;
  void on_headers(const http2::Frame& frame, const http2::HeaderList& fields, bool end_stream, bool readable) override;
  void on_data(const http2::Frame& frame, std::span<const uint8_t> piece, int64_t time_ns) override;
  void on_rst_stream(const http2::Frame& frame, uint32_t error_code) override;
  void on_goaway(const http2::Frame& frame, uint32_t last_stream, uint32_t error_code,
                 std::span<const uint8_t> debug_bytes) override;
  void on_unreadable(Direction direction, uint64_t offset, const std::string& reason, bool headers_only) override;

  ConnectionId connection_;
  Append append_;
  std::unique_ptr<capture::Record> record_;  // used again for each
  http2::CallBuilder builder_;
  http2::ConnectionReader reader_;
  int64_t now_ns_ = 0;
  std::optional<Direction> first_end_;
};

}  // namespace ztape::proxy
