#include "net/http_page.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace ztape::net {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::string head(std::string_view status, std::string_view content_type, std::size_t bytes,
                 std::string_view more = "") {
  return "HTTP/1.1 " + std::string(status) + "\r\nContent-Type: " + std::string(content_type) +
         "\r\nContent-Length: " + std::to_string(bytes) + "\r\n" + std::string(more) + "Connection: close\r\n\r\n";
}

// RFC 9112, section 3: method SP target SP version.
struct RequestLine {
  std::string_view method;
  std::string_view path;  // without its query
  bool valid = false;
};

RequestLine parse(std::string_view line) {
  RequestLine request;
  const auto first = line.find(' ');
  const auto second = line.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return request;
  request.method = line.substr(0, first);
  request.path = line.substr(first + 1, second - first - 1);
  request.path = request.path.substr(0, request.path.find('?'));
  request.valid = !request.method.empty() && request.path.starts_with('/') &&
                  line.substr(second + 1).starts_with("HTTP/1.") && line.size() == second + 1 + 8;
  return request;
}

}  // namespace

// One connection, until its peer has the answer and closes. Held by its page; an answer that comes later finds it gone.
class HttpPage::Visit final : public Connection::Handler, public std::enable_shared_from_this<Visit> {
 public:
  Visit(HttpPage& page, std::unique_ptr<TcpConnection> connection)
      : page_(page), connection_(std::move(connection)), deadline_(page.loop_) {}

  void begin() {
    connection_->set_handler(this);
    deadline_.start(page_.options_.patience_ns, [this] {
      connection_->reset();
      page_.ended(*this);
    });
    connection_->start_reading();
  }

 private:
  void on_read(Slice bytes, MonotonicTime /*time*/) override {
    if (asked_) return;  // a pipelined request: there is one answer a connection
    request_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto end = request_.find(kHeadEnd);
    if (end != std::string::npos) return asked();
    if (request_.size() > page_.options_.max_request_bytes) refuse("431 Request Header Fields Too Large");
  }
  void on_eof(MonotonicTime /*time*/) override {
    peer_ended_ = true;
    if (!asked_ || answered_) page_.ended(*this);
  }
  void on_error(const std::string& /*system_error*/, MonotonicTime /*time*/) override { page_.ended(*this); }
  void on_drained() override { done(); }

  void asked() {
    asked_ = true;
    const auto request = parse(std::string_view(request_).substr(0, request_.find("\r\n")));
    if (!request.valid) return refuse("400 Bad Request");
    head_only_ = request.method == "HEAD";
    if (!head_only_ && request.method != "GET") return refuse("405 Method Not Allowed", "Allow: GET, HEAD\r\n");
    if (request.path != page_.options_.path) return refuse("404 Not Found");
    page_.on_asked_([weak = weak_from_this()](std::string text) {
      if (const auto visit = weak.lock()) visit->answer(text);
    });
  }

  void refuse(std::string_view status, std::string_view more = "") {
    asked_ = true;
    const std::string text = std::string(status) + "; the page is " + page_.options_.path + "\n";
    send(head(status, "text/plain; charset=utf-8", text.size(), more), text);
  }

  void answer(const std::string& text) { send(head("200 OK", page_.options_.content_type, text.size()), text); }

  void send(std::string whole, const std::string& text) {
    if (!head_only_) whole += text;
    connection_->write(std::move(whole));
    if (connection_->queued_bytes() == 0) done();  // else on_drained, or the deadline
  }

  // All is in the kernel. The peer closes then; a close of ours before that could take unread bytes of the answer away.
  void done() {
    answered_ = true;
    connection_->half_close();
    if (peer_ended_) page_.ended(*this);
  }

  HttpPage& page_;
  std::unique_ptr<Connection> connection_;
  Timer deadline_;
  std::string request_;
  bool asked_ = false;
  bool answered_ = false;
  bool peer_ended_ = false;
  bool head_only_ = false;
};

Result<std::unique_ptr<HttpPage>> HttpPage::listen(Loop& loop, const SocketAddress& address, OnAsked on_asked,
                                                   HttpPageOptions options) {
  std::unique_ptr<HttpPage> page(new HttpPage(loop, std::move(on_asked), std::move(options)));
  auto listener =
      TcpListener::listen(loop, address, [raw = page.get()](auto connection) { raw->accept(std::move(connection)); });
  if (!listener) return std::unexpected(std::move(listener.error()));
  page->listener_ = std::move(*listener);
  page->listener_->let_loop_end();
  return page;
}

HttpPage::HttpPage(Loop& loop, OnAsked on_asked, HttpPageOptions options)
    : loop_(loop), on_asked_(std::move(on_asked)), options_(std::move(options)) {}

HttpPage::~HttpPage() = default;

void HttpPage::accept(std::unique_ptr<TcpConnection> connection) {
  const auto visit = visits_.emplace_back(std::make_shared<Visit>(*this, std::move(connection)));
  if (visits_.size() >= options_.max_connections) listener_->pause();
  visit->begin();
}

// Destroys the visit, whose own function may be what calls this.
void HttpPage::ended(const Visit& visit) {
  const auto found = std::ranges::find_if(visits_, [&](const auto& one) { return one.get() == &visit; });
  if (found == visits_.end()) return;
  visits_.erase(found);
  listener_->resume();
}

}  // namespace ztape::net
