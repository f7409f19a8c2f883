// Reads both directions of one HTTP/2 connection passively: bytes in, frames and headers out. Sans-I/O.
//
// Never guesses. What it cannot follow (no preface, a frame it must not parse, an HPACK error, a gap) makes that
// direction unreadable from there on, once, with a reason; the other direction goes on. Bytes may be cut anywhere; the
// order of the calls must be the order in which the bytes crossed. Memory is bounded: DATA is passed on in pieces, a
// header block is held up to kMaxHeaderBlockBytes.
//
// A connection that begins with an HTTP/1 request to upgrade to h2c is held back (up to 256 KiB) until its answer;
// after 101 the frames are read, and on_headers and on_data tell the request as that of stream 1, of which there is no
// frame.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "http2/frame.h"
#include "proto/capture.pb.h"
#include "proto/words.h"

namespace ztape::http2 {

// A larger header block is taken for a bomb: from there on the direction has frames, but no headers.
inline constexpr std::size_t kMaxHeaderBlockBytes = 256 * 1024;  // compressed
inline constexpr std::size_t kMaxHeaderListBytes = 1024 * 1024;  // decoded, RFC 9113 section 6.5.2's measure

// From `offset` on a direction has no frames, or (headers_only) no headers, any more.
struct Unreadable {
  Direction direction = Direction::client_to_server;
  uint64_t offset = 0;
  int64_t time_ns = 0;  // of the read that showed it
  std::string reason;
  bool headers_only = false;
};

// Receives what the reader finds, in the order of the bytes. References are valid during the call only.
class ReaderSink {
 public:
  virtual ~ReaderSink() = default;

  // Every frame, once its last byte has come; before that the callbacks of its content.
  virtual void on_frame(const Frame& /*frame*/) {}

  // A header block is whole: HEADERS with its CONTINUATIONs, or PUSH_PROMISE. `frame` is the first frame of the block,
  // with last_byte_ns that of the last. `readable` is false when HPACK state is lost: then `fields` is empty.
  virtual void on_headers(const Frame& /*frame*/, const HeaderList& /*fields*/, bool /*end_stream*/,
                          bool /*readable*/) {}

  // A piece of a DATA frame's content, padding left out; `frame` has no last_byte_ns yet; `time_ns` is the piece's.
  virtual void on_data(const Frame& /*frame*/, std::span<const uint8_t> /*piece*/, int64_t /*time_ns*/) {}

  virtual void on_rst_stream(const Frame& /*frame*/, uint32_t /*error_code*/) {}
  virtual void on_settings(const Frame& /*frame*/, std::span<const Setting> /*settings*/) {}  // not for an ACK
  virtual void on_window_update(const Frame& /*frame*/, uint32_t /*increment*/) {}
  virtual void on_goaway(const Frame& /*frame*/, uint32_t /*last_stream*/, uint32_t /*error_code*/,
                         std::span<const uint8_t> /*debug_bytes*/) {}

  virtual void on_unreadable(const Unreadable& /*lost*/) {}
};

class ConnectionReader {
 public:
  explicit ConnectionReader(ReaderSink& sink);
  ~ConnectionReader();
  ConnectionReader(ConnectionReader&&) noexcept;
  ConnectionReader& operator=(ConnectionReader&&) = delete;

  // The next bytes of one direction.
  void read(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns);

  // Bytes of this direction are missing: it is unreadable from here on.
  void gap(Direction direction, const std::string& reason);

  // The direction has ended: an upgrade that was waited for does not come any more.
  void end(Direction direction);

  // All that it knows of the connection, into the record's directions and `held`; and the reverse, whatever it has read
  // until then. A direction that cannot be read from there on is told to the sink again.
  void save(capture::ConnectionState& out) const;
  void restore(const capture::ConnectionState& state);
  // Whether it stands there already.
  [[nodiscard]] bool is_in(const capture::ConnectionState& state) const;

  [[nodiscard]] bool readable(Direction direction) const;
  [[nodiscard]] uint64_t offset(Direction direction) const;  // bytes taken in so far

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ztape::http2
