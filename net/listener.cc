#include "net/listener.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "net/loop_handle.h"
#include "net/socket_options.h"
#include "net/tcp_impl.h"

namespace ztape::net {
namespace {

constexpr int64_t kRetryNs = 100'000'000;
constexpr int kAcceptsATurn = 64;  // then the connections that are there get their turn

std::unexpected<Error> refused(int error, const std::string& subject) {
  return std::unexpected(Error{.code = ErrorCode::address, .message = uv_strerror(-error), .subject = subject});
}

bool set_flag(int fd, int level, int option) {
  const int on = 1;
  return setsockopt(fd, level, option, &on, sizeof(on)) == 0;
}

bool set_transparent(int fd) {
  int family = 0;
  socklen_t size = sizeof(family);
  getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
  const bool v4 = set_flag(fd, IPPROTO_IP, IP_TRANSPARENT);
  return family == AF_INET6 ? set_flag(fd, IPPROTO_IPV6, IPV6_TRANSPARENT) : v4;
}

std::unique_ptr<TcpConnection> connection_of(Loop& loop, Descriptor accepted, const SocketAddress& peer) {
  auto* impl = new TcpConnection::Impl(loop);
  impl->accepted_from = peer.text();
  // It fails for what is no socket, and for one that the loop has already.
  if (uv_tcp_open(&impl->handle, accepted.release()) != 0) std::abort();
  return std::make_unique<TcpConnection>(impl);
}

// Somebody else's connection ended before it was taken, or a firewall said no: accept(2), "Error handling in Linux".
bool is_about_one_connection(int error) {
  switch (error) {
    case ECONNABORTED:
    case EPERM:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case EINTR: return true;
    default: return false;
  }
}

}  // namespace

struct TcpListener::Impl final : LoopHandle {
  uv_poll_t poll{};
  Loop& loop;
  Descriptor socket;
  OnConnection on_connection;
  std::function<void(const std::string&)> on_exhausted;
  std::unique_ptr<Timer> retry;
  bool transparent = false;
  bool paused = true;
  bool closing = false;

  Impl(Loop& on, Descriptor listening, OnConnection then)
      : loop(on), socket(std::move(listening)), on_connection(std::move(then)) {
    if (uv_poll_init(loop.raw(), &poll, socket.fd()) != 0) std::abort();  // epoll takes every socket
    poll.data = static_cast<LoopHandle*>(this);
  }

  void close_handles() override {
    if (std::exchange(closing, true)) return;
    paused = true;
    retry.reset();
    uv_close(reinterpret_cast<uv_handle_t*>(&poll),
             [](uv_handle_t* closed) { delete static_cast<Impl*>(static_cast<LoopHandle*>(closed->data)); });
    socket.reset();
  }

  void pause() {
    retry.reset();  // whoever pauses it resumes it
    if (closing || std::exchange(paused, true)) return;
    uv_poll_stop(&poll);
  }

  void resume() {
    if (closing || !std::exchange(paused, false)) return;
    uv_poll_start(&poll, UV_READABLE, [](uv_poll_t* on, int status, int) {
      auto* self = static_cast<Impl*>(static_cast<LoopHandle*>(on->data));
      self->loop.note_event();
      if (status == 0) self->accept_some();
    });
  }

  void accept_some() {
    for (int i = 0; i < kAcceptsATurn && !paused; ++i) {
      SocketAddress peer;
      socklen_t size = sizeof(peer.storage);
      Descriptor accepted(
          accept4(socket.fd(), reinterpret_cast<sockaddr*>(&peer.storage), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (accepted.open()) {
        on_connection(connection_of(loop, std::move(accepted), peer));
        continue;
      }
      if (errno == EAGAIN) return;
      if (!is_about_one_connection(errno)) return wait_for_better_times(errno);
    }
  }

  // The backlog stays readable: without a pause the loop would spin.
  void wait_for_better_times(int error) {
    pause();
    retry = std::make_unique<Timer>(loop);
    retry->start(kRetryNs, [this] { resume(); });
    if (on_exhausted) on_exhausted(uv_err_name(-error));
  }
};

Result<std::unique_ptr<TcpListener>> TcpListener::listen(Loop& loop, const SocketAddress& address,
                                                         OnConnection on_connection, const ListenOptions& options) {
  const int family = address.storage.ss_family;
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open()) return refused(errno, address.text());
  set_flag(socket.fd(), SOL_SOCKET, SO_REUSEADDR);
  if (bind(socket.fd(), address.raw(), address.size()) != 0) return refused(errno, address.text());
  if (::listen(socket.fd(), SOMAXCONN) != 0) return refused(errno, address.text());
  return adopt(loop, std::move(socket), std::move(on_connection), options);
}

Result<std::unique_ptr<TcpListener>> TcpListener::adopt(Loop& loop, Descriptor socket, OnConnection on_connection,
                                                        const ListenOptions& options) {
  const std::string subject = "descriptor " + std::to_string(socket.fd());
  int listening = 0, domain = 0;
  socklen_t size = sizeof(int);
  if (getsockopt(socket.fd(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0) return refused(errno, subject);
  getsockopt(socket.fd(), SOL_SOCKET, SO_DOMAIN, &domain, &size);
  if (listening == 0 || (domain != AF_INET && domain != AF_INET6)) {
    return std::unexpected(
        Error{.code = ErrorCode::address, .message = "is not a listening TCP socket", .subject = subject});
  }
  auto* impl = new Impl(loop, std::move(socket), std::move(on_connection));
  std::unique_ptr<TcpListener> listener(new TcpListener(impl));
  if (options.transparent) impl->transparent = set_transparent(impl->socket.fd());
  impl->resume();
  return listener;
}

TcpListener::TcpListener(Impl* impl) : impl_(impl) {}

TcpListener::~TcpListener() {
  impl_->close_handles();
}

void TcpListener::pause() {
  impl_->pause();
}

void TcpListener::resume() {
  impl_->resume();
}

void TcpListener::let_loop_end() {
  uv_unref(reinterpret_cast<uv_handle_t*>(&impl_->poll));
}

void TcpListener::set_on_exhausted(std::function<void(const std::string& system_error)> on_exhausted) {
  impl_->on_exhausted = std::move(on_exhausted);
}

std::string TcpListener::local_text() const {
  return local_address(impl_->socket.fd()).text();
}

bool TcpListener::transparent() const {
  return impl_->transparent;
}

}  // namespace ztape::net
