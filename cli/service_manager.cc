#include "cli/service_manager.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "net/descriptor.h"

namespace ztape::cli {
namespace {

constexpr int kFirstPassed = 3;  // SD_LISTEN_FDS_START

// -1 where the variable is missing or no number.
long take_number(const char* name) {
  const char* value = std::getenv(name);
  if (!value) return -1;
  const std::string_view text = value;
  long number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool fine = error == std::errc() && end == text.data() + text.size();
  unsetenv(name);
  return fine ? number : -1;
}

}  // namespace

std::vector<int> take_passed_sockets() {
  const long pid = take_number("LISTEN_PID"), count = take_number("LISTEN_FDS");
  unsetenv("LISTEN_FDNAMES");
  std::vector<int> sockets;
  if (pid != getpid()) return sockets;  // meant for somebody else, who started us
  for (int fd = kFirstPassed; fd < kFirstPassed + count; ++fd) {
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) break;  // fewer than were announced
    sockets.push_back(fd);
  }
  return sockets;
}

void tell_service_manager(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (!path || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(path);
  if (length >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, path, length);
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // an abstract socket
  const net::Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.open()) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  sendto(socket.fd(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace ztape::cli
