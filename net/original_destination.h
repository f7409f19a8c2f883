// Where a connection wanted to go before a rule of the firewall sent it to us.
#pragma once

#include "net/address.h"

namespace ztape::net {

// Of an accepted socket: what a REDIRECT or DNAT rule replaced (SO_ORIGINAL_DST, IP6T_SO_ORIGINAL_DST of the kernel's
// connection tracking), otherwise its own end, which under a TPROXY rule is the destination itself. IPv4 in IPv6 is
// given as IPv4. An address without a family where the connection is gone.
SocketAddress original_destination(int fd);

// Whether it is an address of this machine (127.0.0.0/8, or one of an interface), whatever its port.
bool is_address_of_this_machine(const SocketAddress& address);

}  // namespace ztape::net
