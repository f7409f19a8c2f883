#include "net/socket_options.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace ztape::net {
namespace {

constexpr uint8_t kTcpClosed = 7;  // TCP_CLOSE of the kernel's include/net/tcp_states.h

bool get_info(int fd, tcp_info& info) {
  socklen_t size = sizeof(info);
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
}

}  // namespace

Result<void> set_nodelay(int fd, bool on) {
  const int value = on ? 1 : 0;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof(value)) != 0) {
    return std::unexpected(
        Error{.code = ErrorCode::io, .message = std::string("TCP_NODELAY: ") + strerror(errno), .subject = ""});
  }
  return {};
}

void set_quickack(int fd) {
  const int value = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &value, sizeof(value));
}

std::optional<TcpInfo> read_tcp_info(int fd) {
  tcp_info info{};
  if (!get_info(fd, info)) return std::nullopt;
  return TcpInfo{.rtt_us = info.tcpi_rtt,
                 .rttvar_us = info.tcpi_rttvar,
                 .min_rtt_us = info.tcpi_min_rtt,
                 .snd_mss = info.tcpi_snd_mss,
                 .rcv_mss = info.tcpi_rcv_mss,
                 .snd_cwnd = info.tcpi_snd_cwnd,
                 .unacked = info.tcpi_unacked,
                 .total_retrans = info.tcpi_total_retrans,
                 .notsent_bytes = info.tcpi_notsent_bytes,
                 .ato_us = info.tcpi_ato,
                 .bytes_acked = info.tcpi_bytes_acked,
                 .bytes_received = info.tcpi_bytes_received};
}

std::string read_congestion_control(int fd) {
  char name[32] = "";
  socklen_t size = sizeof(name) - 1;
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) != 0) return "";
  return name;
}

void set_reset_on_close(int fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

std::size_t unacknowledged_bytes(int fd) {
  tcp_info info{};
  if (!get_info(fd, info) || info.tcpi_state == kTcpClosed) return 0;
  int bytes = 0;
  if (ioctl(fd, SIOCOUTQ, &bytes) != 0) return 0;
  return static_cast<std::size_t>(bytes);
}

SocketAddress local_address(int fd) {
  SocketAddress address;
  socklen_t size = sizeof(address.storage);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &size) != 0) return {};
  return address;
}

SocketAddress peer_address(int fd) {
  SocketAddress address;
  socklen_t size = sizeof(address.storage);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address.storage), &size) != 0) return {};
  return address;
}

}  // namespace ztape::net
