#include "tests/support/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "tests/support/child_process.h"

namespace ztape::test {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + strerror(errno));
}

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address parse(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) throw std::runtime_error("no port in " + text);
  const auto port = htons(static_cast<uint16_t>(std::stoul(text.substr(colon + 1))));
  std::string host = text.substr(0, colon);
  Address address;
  if (host.starts_with('[')) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = port;
    host = host.substr(1, host.size() - 2);
    if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) throw std::runtime_error("bad address " + text);
    address.size = sizeof(v6);
  } else {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
    v4.sin_family = AF_INET;
    v4.sin_port = port;
    if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) != 1) throw std::runtime_error("bad address " + text);
    address.size = sizeof(v4);
  }
  return address;
}

int make_socket(const Address& address) {
  const int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  return fd;
}

void wait_for(int fd, short events, const char* what) {
  pollfd waiting{.fd = fd, .events = events, .revents = 0};
  const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count();
  const int ready = poll(&waiting, 1, static_cast<int>(patience));
  if (ready == 0) throw std::runtime_error(std::string(what) + ": nothing came");
  if (ready < 0) fail(what);
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Socket Socket::connect(const std::string& text) {
  Address address = parse(text);
  Socket socket(make_socket(address));
  if (::connect(socket.fd_, address.raw(), address.size) != 0) fail("connect to " + text);
  return socket;
}

void Socket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN) {
      wait_for(fd_, POLLOUT, "send");
      continue;
    }
    if (size < 0) fail("send");
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
}

std::size_t Socket::send_without_waiting(std::string_view bytes) {
  const ssize_t size = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return size < 0 ? 0 : static_cast<std::size_t>(size);
}

std::string Socket::receive(std::size_t bytes) {
  std::string all;
  while (all.size() < bytes) {
    const auto piece = receive_some(bytes - all.size());
    if (piece.empty()) {
      throw std::runtime_error("the end came after " + std::to_string(all.size()) + " of " + std::to_string(bytes) +
                               " bytes");
    }
    all += piece;
  }
  return all;
}

std::string Socket::receive_some(std::size_t most) {
  wait_for(fd_, POLLIN, "receive");
  std::string bytes(most, '\0');
  const ssize_t size = ::recv(fd_, bytes.data(), bytes.size(), 0);
  if (size < 0) fail("receive");
  bytes.resize(static_cast<std::size_t>(size));
  return bytes;
}

std::string Socket::receive_all(std::string* error) {
  std::string all;
  char buffer[65536];
  for (;;) {
    wait_for(fd_, POLLIN, "receive");
    const ssize_t size = ::recv(fd_, buffer, sizeof(buffer), 0);
    if (size < 0) {
      if (!error) fail("receive");
      *error = strerrorname_np(errno);
      return all;
    }
    if (size == 0) {
      if (error) error->clear();
      return all;
    }
    all.append(buffer, static_cast<std::size_t>(size));
  }
}

void Socket::shutdown_write() {
  if (::shutdown(fd_, SHUT_WR) != 0) fail("shutdown");
}

void Socket::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close();
}

void Socket::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void Socket::set_receive_buffer(int bytes) {
  setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

void Socket::set_nodelay() {
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

std::string Socket::local_text() const {
  Address address;
  address.size = sizeof(address.storage);
  if (getsockname(fd_, address.raw(), &address.size) != 0) fail("getsockname");
  char host[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
    inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
    return "[" + std::string(host) + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
  inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
  return std::string(host) + ":" + std::to_string(ntohs(v4.sin_port));
}

ListeningSocket::ListeningSocket(const std::string& text) {
  Address address = parse(text);
  Socket socket(make_socket(address));
  const int on = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket.fd(), address.raw(), address.size) != 0) fail("bind " + text);
  if (listen(socket.fd(), 128) != 0) fail("listen " + text);
  socket_ = std::move(socket);
}

Socket ListeningSocket::accept() {
  wait_for(socket_.fd(), POLLIN, "accept");
  const int fd = accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) fail("accept");
  return Socket(fd);
}

}  // namespace ztape::test
