// What systemd and its like hand to a service they start, and what they want to hear from it: sd_listen_fds(3) and
// sd_notify(3), without their library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ztape::cli {

// The listening sockets passed on to this process, in their order, close-on-exec; empty where there are none. Takes
// LISTEN_PID and LISTEN_FDS out of the environment, so it is to be called once, before there are threads.
std::vector<int> take_passed_sockets();

// "READY=1", "STOPPING=1", ...; nothing where nobody asked for it. Best effort.
void tell_service_manager(std::string_view state);

}  // namespace ztape::cli
