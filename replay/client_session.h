// The client's side of one HTTP/2 connection, on nghttp2: requests and received bytes in, bytes to send and answers
// out. Sans-I/O. One thread; every callback comes from within receive() or take_output().
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "http2/frame.h"
#include "proto/error.h"

namespace ztape::replay {

class ClientSession {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    // The request's HEADERS are in the bytes that take_output() is about to return: the server let it start.
    virtual void on_request_sent(int32_t stream) = 0;
    // A header block of the answer: its headers, or its trailers (`end_stream`), or both at once.
    virtual void on_headers(int32_t stream, const http2::HeaderList& fields, bool end_stream) = 0;
    virtual void on_data(int32_t stream, std::span<const uint8_t> bytes) = 0;
    // END_STREAM came on a DATA frame.
    virtual void on_data_end(int32_t stream) = 0;
    // The stream is gone. `reset_by_server`: its RST_STREAM, or a GOAWAY that left the stream out, with `error_code`;
    // otherwise the end of both sides, our cancel, or an answer that broke the protocol.
    virtual void on_closed(int32_t stream, uint32_t error_code, bool reset_by_server) = 0;
    // No further request can start. Streams after `last_stream` are closed next.
    virtual void on_goaway(int32_t last_stream, uint32_t error_code, const std::string& debug_text) = 0;
  };

  // Sends the preface, `settings` in their order, and a WINDOW_UPDATE that widens the connection's window by
  // `window_increment` (0: none). Errors: protocol (settings that may not be sent).
  static Result<std::unique_ptr<ClientSession>> create(const std::vector<http2::Setting>& settings,
                                                       uint32_t window_increment, Handler& handler);
  ~ClientSession();
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  // Begins a request whose body is still open; the stream's number. It waits in a queue while the server's
  // MAX_CONCURRENT_STREAMS is reached. Errors: protocol (a GOAWAY came, or no stream numbers are left).
  Result<int32_t> start(const http2::HeaderList& fields);
  void send(int32_t stream, std::string_view bytes);
  void half_close(int32_t stream);
  void reset(int32_t stream, uint32_t error_code);
  void goaway();

  // Bytes from the server. Errors: protocol: the connection cannot go on.
  Result<void> receive(std::span<const uint8_t> bytes);
  // Why the connection cannot go on, after take_output() gave the GOAWAY that says so to the server; or "".
  [[nodiscard]] const std::string& broken() const { return broken_; }
  // What is to be sent now; "" when nothing.
  std::string take_output();

 private:
  struct Body {
    std::string bytes;  // not yet framed
    std::size_t taken = 0;
    bool end = false;
    bool deferred = false;  // nghttp2 waits for resume_data
  };
  struct Callbacks;
  struct Delete {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };

  explicit ClientSession(Handler& handler);
  void resume(int32_t stream, Body& body);

  Handler& handler_;
  std::unique_ptr<nghttp2_session, Delete> session_;
  std::map<int32_t, Body> bodies_;
  http2::HeaderList fields_;  // of the block that is arriving
  std::map<int32_t, bool> reset_by_server_;
  bool frames_seen_ = false;
  std::string broken_;
};

}  // namespace ztape::replay
