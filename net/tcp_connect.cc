#include <algorithm>
#include <cctype>
#include <utility>

#include "net/tcp_impl.h"

namespace ztape::net {

// Owned by the Connector and by the connect request in flight: the last one frees it.
struct Connector::Impl {
  Loop& loop;
  std::vector<SocketAddress> addresses;
  SocketOptions options;
  Callback callback;
  Timer timer;
  std::size_t next = 0;
  TcpConnection::Impl* attempt = nullptr;  // the handle that connects now

  Impl(Loop& on, std::vector<SocketAddress> to, const SocketOptions& with, Callback then)
      : loop(on), addresses(std::move(to)), options(with), callback(std::move(then)), timer(on) {}

  // The request outlives an attempt that was given up: it is cancelled by the handle's close.
  struct Request {
    uv_connect_t connect{};
    Impl* owner;  // nullptr once the attempt was given up
  };
  Request* request = nullptr;
  int64_t timeout_ns = 0;
  MonotonicTime deadline;

  void give_up_attempt() {
    if (request) std::exchange(request, nullptr)->owner = nullptr;
    if (attempt) std::exchange(attempt, nullptr)->close_handles();
  }

  // `this` may be gone afterwards.
  void finish(Result<std::unique_ptr<TcpConnection>> result) {
    timer.cancel();
    const auto moved = std::exchange(callback, nullptr);
    if (moved) moved(std::move(result));
  }

  void fail(std::string reason) {
    give_up_attempt();
    const std::string subject = next > 0 ? addresses[next - 1].text() : "";
    finish(std::unexpected(Error{.code = ErrorCode::unreachable, .message = std::move(reason), .subject = subject}));
  }

  void fail_later(std::string reason) {
    timer.start(0, [this, reason = std::move(reason)] { fail(reason); });
  }

  void try_next() {
    if (addresses.empty()) return fail_later("no address to connect to");
    int status = 0;
    while (next < addresses.size()) {
      const auto& address = addresses[next++];
      attempt = new TcpConnection::Impl(loop);
      request = new Request{.owner = this};
      request->connect.data = request;
      status =
          uv_tcp_connect(&request->connect, &attempt->handle, address.raw(), [](uv_connect_t* connect, int result) {
            auto* done = static_cast<Request*>(connect->data);
            Impl* owner = done->owner;
            delete done;
            if (owner) owner->on_connected(result);
          });
      if (status == 0) return;
      delete std::exchange(request, nullptr);  // not in flight: uv refused it at once
      std::exchange(attempt, nullptr)->close_handles();
    }
    fail_later(uv_strerror(status));
  }

  void on_connected(int status) {
    loop.note_event();
    request = nullptr;
    if (status != 0) {
      std::exchange(attempt, nullptr)->close_handles();
      if (next < addresses.size()) return try_next();
      return fail(uv_strerror(status));
    }
    std::unique_ptr<TcpConnection> connection(new TcpConnection(std::exchange(attempt, nullptr)));
    if (const auto set = connection->set_options(options); !set) return fail(set.error().message);
    finish(std::move(connection));
  }
};

Connector::Connector(Loop& loop, std::vector<SocketAddress> addresses, const SocketOptions& options, int64_t timeout_ns,
                     Callback callback)
    : impl_(new Impl(loop, std::move(addresses), options, std::move(callback))) {
  impl_->timer.start(timeout_ns, [impl = impl_] { impl->fail("no answer in time"); });
  impl_->try_next();
}

Connector::~Connector() {
  impl_->give_up_attempt();
  delete impl_;
}

std::string Connector::local_text() const {
  return impl_->attempt ? net::local_text(impl_->attempt->handle) : "";
}

}  // namespace ztape::net
