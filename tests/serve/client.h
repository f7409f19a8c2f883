// An HTTP/2 client of nghttp2 that talks to a ServeSession in memory.
#pragma once

#include <nghttp2/nghttp2.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "http2/frame.h"
#include "replay/serve_session.h"

namespace ztape::test {

// What one stream was answered.
struct Answered {
  http2::HeaderList headers;        // the first HEADERS
  http2::HeaderList trailers;       // the second
  std::vector<std::size_t> frames;  // lengths of the DATA frames
  std::string body;
  bool ended = false;  // END_STREAM
  int64_t reset_code = -1;

  [[nodiscard]] std::string status() const;  // grpc-status, of trailers or trailers only
  [[nodiscard]] std::string message() const;
  [[nodiscard]] std::vector<std::string> messages() const;  // bodies, all must be whole
};

class MemoryClient {
 public:
  explicit MemoryClient(const std::vector<http2::Setting>& settings = {});
  ~MemoryClient();

  // Sends HEADERS and, where `end`, all messages with END_STREAM on the last; the stream's id.
  int32_t request(const std::string& path, const std::vector<std::string>& messages, bool end = true,
                  const http2::HeaderList& metadata = {});
  // A further message of a stream that was not ended; without `body` only END_STREAM.
  void send_more(int32_t stream, const std::string& body);
  void end(int32_t stream);
  void cancel(int32_t stream);

  // Hands bytes to and fro at `now` until neither side has more. Every write of the server is added to `writes`.
  void exchange(replay::ServeSession& server, MonotonicTime now = {});
  // Only the client's bytes go to the server.
  void send_to(replay::ServeSession& server, MonotonicTime now = {});
  void receive(const std::string& write);

  std::map<int32_t, Answered> answers;
  std::vector<std::string> writes;
  bool goaway = false;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The types of the frames in one write: "HEADERS DATA HEADERS".
std::string frame_types(const std::string& write);

}  // namespace ztape::test
