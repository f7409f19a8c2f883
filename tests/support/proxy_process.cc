#include "tests/support/proxy_process.h"

#include <algorithm>
#include <csignal>
#include <stdexcept>

namespace ztape::test {
namespace {

std::string url_of(const std::string& upstream) {
  return upstream.find("://") == std::string::npos ? "http://" + upstream : upstream;
}

std::vector<std::string> arguments(const std::string& upstream, const std::string& capture,
                                   const std::vector<std::string>& more, const std::vector<std::string>& launcher) {
  std::vector<std::string> all = launcher;
  all.insert(all.end(), {ztape(), "proxy", "--upstream", url_of(upstream), "-w", capture});
  if (std::find(more.begin(), more.end(), "--listen") == more.end()) {
    all.insert(all.end(), {"--listen", "127.0.0.1:0"});
  }
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

ProxyProcess::ProxyProcess(const std::string& upstream, const std::string& capture,
                           const std::vector<std::string>& more, const std::vector<std::string>& launcher)
    : process_(arguments(upstream, capture, more, launcher)) {
  const std::string line = process_.line();
  const std::string begin = "listening on ";
  const auto comma = line.find(", upstream " + url_of(upstream) + ", recording to ");
  if (!line.starts_with(begin) || comma == std::string::npos) {
    throw std::runtime_error("not the first line of a proxy: " + line);
  }
  address_ = line.substr(begin.size(), comma - begin.size());
}

int ProxyProcess::stop() {
  process_.signal(SIGTERM);
  return process_.wait();
}

}  // namespace ztape::test
