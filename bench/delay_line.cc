// A line with a round-trip time: packets that leave one network namespace arrive in another, half of it later. (The
// kernel's own netem is not there everywhere.) No loss, no limit of the rate, order kept.
//
//   delay_line PID PID RTT_US    a TUN device `line` in the network namespace of each process; "ready" on stdout
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <string>

namespace {

constexpr std::size_t kPacketBytes = 1500;

struct Packet {
  int64_t due_ns;
  std::size_t size;
  std::array<uint8_t, kPacketBytes> bytes;
};

struct End {
  int fd;
  std::deque<Packet> to_come;  // from the other end
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "delay_line: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// The descriptor keeps its namespace when this process goes on to another.
int tun_of(const std::string& pid) {
  const int space = open(("/proc/" + pid + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) fail("the network namespace");
  close(space);
  const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) fail("/dev/net/tun");
  ifreq request{};
  std::strncpy(request.ifr_name, "line", IFNAMSIZ - 1);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(fd, TUNSETIFF, &request) != 0) fail("TUNSETIFF");
  return fd;
}

void carry(End& from, End& to, int64_t delay_ns) {
  Packet packet;
  for (;;) {
    const ssize_t size = read(from.fd, packet.bytes.data(), packet.bytes.size());
    if (size <= 0) return;
    packet.size = static_cast<std::size_t>(size);
    packet.due_ns = now_ns() + delay_ns;
    to.to_come.push_back(packet);
  }
}

void deliver(End& end, int64_t now) {
  while (!end.to_come.empty() && end.to_come.front().due_ns <= now) {
    const auto& packet = end.to_come.front();
    // A device that is down or full loses a packet, as a wire does.
    [[maybe_unused]] const ssize_t count = write(end.fd, packet.bytes.data(), packet.size);
    end.to_come.pop_front();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: delay_line PID PID RTT_US\n");
    return 2;
  }
  std::array<End, 2> ends{End{.fd = tun_of(argv[1]), .to_come = {}}, End{.fd = tun_of(argv[2]), .to_come = {}}};
  const int64_t delay_ns = std::atoll(argv[3]) * 1000 / 2;
  prctl(PR_SET_TIMERSLACK, 1);
  std::puts("ready");
  std::fflush(stdout);
  for (;;) {
    std::array<pollfd, 2> waits{pollfd{ends[0].fd, POLLIN, 0}, pollfd{ends[1].fd, POLLIN, 0}};
    int64_t due = INT64_MAX;
    for (const auto& end : ends) {
      if (!end.to_come.empty()) due = std::min(due, end.to_come.front().due_ns);
    }
    const int64_t wait = due == INT64_MAX ? 0 : std::max<int64_t>(0, due - now_ns());
    const timespec timeout{.tv_sec = wait / 1'000'000'000, .tv_nsec = wait % 1'000'000'000};
    if (ppoll(waits.data(), waits.size(), due == INT64_MAX ? nullptr : &timeout, nullptr) < 0 && errno != EINTR)
      fail("ppoll");
    carry(ends[0], ends[1], delay_ns);
    carry(ends[1], ends[0], delay_ns);
    const int64_t now = now_ns();
    deliver(ends[0], now);
    deliver(ends[1], now);
  }
}
