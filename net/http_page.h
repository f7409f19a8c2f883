// A page for programs that look in now and then, over HTTP/1.1: GET or HEAD of one path, one answer a connection.
// Whatever its peers do costs little: few connections at once (the others wait in the kernel's backlog), small
// requests, and a deadline for all of it. By itself it does not keep the loop's run() from ending. Lives on the loop's
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "net/address.h"
#include "net/listener.h"
#include "net/loop.h"
#include "proto/error.h"

namespace ztape::net {

struct HttpPageOptions {
  std::string path = "/metrics";
  std::string content_type = "text/plain; charset=utf-8";
  std::size_t max_connections = 16;
  std::size_t max_request_bytes = 8 * 1024;
  int64_t patience_ns = 10'000'000'000;  // from the connection to the last byte of the answer
};

class HttpPage {
 public:
  // Takes the page's text; on the loop's thread, once, at any time, also when the HttpPage is gone.
  using Answer = std::function<void(std::string)>;
  using OnAsked = std::function<void(Answer)>;

  // Errors: address.
  static Result<std::unique_ptr<HttpPage>> listen(Loop& loop, const SocketAddress& address, OnAsked on_asked,
                                                  HttpPageOptions options = {});
  ~HttpPage();
  HttpPage(const HttpPage&) = delete;
  HttpPage& operator=(const HttpPage&) = delete;

  [[nodiscard]] std::string local_text() const { return listener_->local_text(); }

 private:
  class Visit;
  HttpPage(Loop& loop, OnAsked on_asked, HttpPageOptions options);
  void accept(std::unique_ptr<TcpConnection> connection);
  void ended(const Visit& visit);

  Loop& loop_;
  OnAsked on_asked_;
  const HttpPageOptions options_;
  std::unique_ptr<TcpListener> listener_;
  std::list<std::shared_ptr<Visit>> visits_;
};

}  // namespace ztape::net
