// Options and facts of one TCP socket, by its descriptor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "net/address.h"
#include "proto/error.h"

namespace ztape::net {

struct SocketOptions {
  bool nodelay = true;
  bool quickack_every_read = false;  // TCP_QUICKACK=1 in each read callback, before on_read
};

// What the kernel's TCP_INFO says of one socket; the fields of capture.proto's TcpInfo, same units.
struct TcpInfo {
  uint32_t rtt_us, rttvar_us, min_rtt_us, snd_mss, rcv_mss, snd_cwnd, unacked, total_retrans, notsent_bytes, ato_us;
  uint64_t bytes_acked, bytes_received;
};

// Each works on any TCP socket; a descriptor that is none gives nullopt, "" or an error (io).
Result<void> set_nodelay(int fd, bool on);
void set_quickack(int fd);  // until the kernel leaves quick-ack mode again, which the next send may do
std::optional<TcpInfo> read_tcp_info(int fd);
std::string read_congestion_control(int fd);
// Its own end and its peer's; an address without a family where there is none.
SocketAddress local_address(int fd);
SocketAddress peer_address(int fd);
// The next close sends an RST and drops what the peer has not acknowledged (socket(7), SO_LINGER with 0 seconds).
void set_reset_on_close(int fd);
// Sent, or still to be sent, and not acknowledged; 0 for a socket that is closed (tcp(7), SIOCOUTQ).
std::size_t unacknowledged_bytes(int fd);

}  // namespace ztape::net
