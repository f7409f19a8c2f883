// Reads both directions of one HTTP/1 connection passively: bytes in, heads and bodies out. Sans-I/O; the syntax is
// http_parser's, the parser of node.js before llhttp.
//
// Bytes may be cut anywhere; the order of the calls must be the order in which the bytes crossed. What cannot be
// followed ends the reading of both directions, once, with a reason. Memory: one head (up to 80 KiB) a direction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "http2/call.h"
#include "proto/words.h"

namespace ztape::http2 {

// The start line and the fields of a request or a response (RFC 9112, section 2.1). Names are in lower case.
struct Http1Head {
  HttpVersion version = HttpVersion::http1_1;
  std::string method;  // of a request
  std::string target;  // of a request, as on its line
  int status = 0;      // of a response
  HeaderList fields;
  bool upgrade = false;  // after this message the connection speaks another protocol
};

// Receives what the reader finds. References are valid during the call only.
class Http1Sink {
 public:
  virtual ~Http1Sink() = default;
  virtual void on_head(Direction direction, const Http1Head& head, int64_t time_ns) = 0;
  virtual void on_body(Direction direction, std::span<const uint8_t> piece, int64_t time_ns) = 0;
  virtual void on_end(Direction direction, int64_t time_ns) = 0;  // of one message
  // Not HTTP/1 from here on, or not in step any more.
  virtual void on_lost(Direction direction, const std::string& reason) = 0;
};

class Http1Reader {
 public:
  explicit Http1Reader(Http1Sink& sink);
  ~Http1Reader();
  Http1Reader(const Http1Reader&) = delete;
  Http1Reader& operator=(const Http1Reader&) = delete;

  // How many of the bytes belong to HTTP/1: fewer than all where the connection changes its protocol within them, or
  // where the reading ends.
  std::size_t read(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns);
  // The direction has ended, which may be the end of a body.
  void end(Direction direction, int64_t time_ns);
  // Bytes are missing.
  void gap(Direction direction, const std::string& reason);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ztape::http2
