#include "tests/support/network_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>

namespace ztape::test {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + strerror(errno));
}

// A child in a new network namespace that sleeps for ever; -1 with errno where the system does not allow it.
pid_t start_sleeper() {
  int told[2];
  if (pipe2(told, O_CLOEXEC) != 0) return -1;
  const pid_t pid = fork();
  if (pid == 0) {
    // Only calls that are safe after a fork of a program with threads.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int error = unshare(CLONE_NEWNET) == 0 ? 0 : errno;
    if (write(told[1], &error, sizeof(error)) < 0 || error != 0) _exit(1);
    for (;;) pause();
  }
  close(told[1]);
  int error = EIO;
  if (pid < 0 || read(told[0], &error, sizeof(error)) != sizeof(error)) error = EIO;
  close(told[0]);
  if (error != 0 && pid > 0) waitpid(pid, nullptr, 0);
  errno = error;
  return error == 0 ? pid : -1;
}

}  // namespace

std::string NetworkNamespace::missing() {
  for (const char* program : {"ip", "nsenter"}) {
    if (std::system(("command -v " + std::string(program) + " >/dev/null").c_str()) != 0) {
      return std::string(program) + " is not installed";
    }
  }
  const pid_t pid = start_sleeper();
  if (pid < 0) return std::string("no network namespace can be made (it takes CAP_SYS_ADMIN): ") + strerror(errno);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return "";
}

NetworkNamespace::NetworkNamespace() : pid_(start_sleeper()) {
  if (pid_ < 0) fail("network namespace");
  shell("ip link set lo up");
}

NetworkNamespace::~NetworkNamespace() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::vector<std::string> NetworkNamespace::launcher() const {
  return {"nsenter", "--net=/proc/" + std::to_string(pid_) + "/ns/net", "--"};
}

void NetworkNamespace::shell(const std::string& lines) const {
  auto words = launcher();
  words.insert(words.end(), {"sh", "-ec", lines});
  const auto ended = run(words);
  if (ended.status != 0) throw std::runtime_error(lines + "\nfailed: " + ended.err);
}

void NetworkNamespace::inside(const std::function<void()>& call) const {
  std::exception_ptr thrown;
  std::thread([&] {
    try {
      const int fd = open(("/proc/" + std::to_string(pid_) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
      const bool entered = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
      if (fd >= 0) close(fd);
      if (!entered) fail("setns");
      call();
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown) std::rethrow_exception(thrown);
}

void connect_by_cable(const CableEnd& one, const CableEnd& other) {
  one.at.shell("ip link add " + one.name + " type veth peer name " + other.name + " netns " +
               std::to_string(other.at.pid()));
  for (const auto* end : {&one, &other}) {
    end->at.shell("ip addr add " + end->ipv4 + " dev " + end->name + "\nip addr add " + end->ipv6 + " dev " +
                  end->name + " nodad\nip link set " + end->name + " up");
  }
}

}  // namespace ztape::test
