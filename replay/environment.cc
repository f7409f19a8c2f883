#include "replay/environment.h"

#include <sys/utsname.h>

#include <fstream>
#include <thread>

namespace ztape::replay {

Environment this_machine() {
  Environment environment;
  utsname names{};
  if (uname(&names) == 0) environment.kernel = std::string(names.sysname) + " " + names.release + " " + names.machine;
  environment.cpus = std::thread::hardware_concurrency();
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) environment.cpu = line.substr(colon + 2);
    break;
  }
  std::ifstream congestion("/proc/sys/net/ipv4/tcp_congestion_control");
  std::getline(congestion, environment.congestion_control);
  return environment;
}

}  // namespace ztape::replay
