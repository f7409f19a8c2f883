// soak_witness: stands at one end of `ztape proxy`, forwards every connection, and keeps count and hash of what it gave
// to the proxy and what it got from it. It shares no code with the program, so that its log is a second opinion.
//
//   soak_witness front|back LISTEN CONNECT LOG SEED FAULTS
//
// front: between the clients and the proxy; the proxy is at CONNECT. back: between the proxy and the server; the proxy
// comes to LISTEN. FAULTS of 1,000 connections get one of the faults below at a random byte.
//
// Prints "listening on ADDRESS", then a line a second: connections, open now, bytes, and each fault's count. SIGUSR1
// ends the accepting, SIGTERM all; then the log is whole. A line of the log, with tabs between:
//   number, the address at the proxy's side, sent bytes, their XXH3-64, received bytes, their XXH3-64, the end,
//   XXH3-64 of the first 4096, 8192, ... sent bytes with commas between ("-" where the end is "clean")
// "clean": the two ends said FIN, and all was passed on.
#define XXH_INLINE_ALL
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostHeld = 64 * 1024;
constexpr uint64_t kCheckpointBytes = 4096;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "soak_witness: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(2);
}

sockaddr_in address_of(const std::string& text) {
  const auto colon = text.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (colon == std::string::npos || inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    errno = EINVAL;
    fail("no address: '" + text + "'");
  }
  address.sin_port = htons(static_cast<uint16_t>(std::stoul(text.substr(colon + 1))));
  return address;
}

using NameOf = int (*)(int, sockaddr*, socklen_t*);
std::string text_of(const sockaddr_in& address) {
  char host[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address.sin_addr, host, sizeof(host));
  return std::string(host) + ":" + std::to_string(ntohs(address.sin_port));
}

std::string text_of(int fd, NameOf name_of) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  return name_of(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? text_of(address) : "";
}

class Tally {
 public:
  Tally() { XXH3_64bits_reset(&state_); }
  void add(const char* bytes, std::size_t size) {
    while (size > 0) {
      const auto piece = std::min<std::size_t>(size, kCheckpointBytes - bytes_ % kCheckpointBytes);
      XXH3_64bits_update(&state_, bytes, piece);
      bytes_ += piece;
      bytes += piece;
      size -= piece;
      if (keep_ && bytes_ % kCheckpointBytes == 0) checkpoints_.push_back(hash());
    }
  }
  void keep_checkpoints() { keep_ = true; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] uint64_t hash() const { return XXH3_64bits_digest(&state_); }
  [[nodiscard]] const std::vector<uint64_t>& checkpoints() const { return checkpoints_; }

 private:
  alignas(64) XXH3_state_t state_{};
  uint64_t bytes_ = 0;
  bool keep_ = false;
  std::vector<uint64_t> checkpoints_;
};

enum Fault : uint8_t { kNone, kReset, kHalfClose, kStall, kTrickle, kFaults };
constexpr std::array<const char*, kFaults> kFaultNames{"none", "resets", "half_closes", "stalls", "trickles"};

// Index of a side. The proxy's is the one whose bytes are counted.
constexpr int kProxy = 0;
constexpr int kPeer = 1;

struct Pair {
  uint64_t number = 0;
  std::array<int, 2> fd{-1, -1};
  std::array<uint32_t, 2> interest{0, 0};
  std::array<std::string, 2> held;  // read from a side, not yet taken by the other
  std::array<std::size_t, 2> taken{0, 0};
  std::array<bool, 2> connected{false, false};
  std::array<bool, 2> eof{false, false};   // of what is read from the side
  std::array<bool, 2> shut{false, false};  // towards the side
  std::string name;
  Tally sent, received;
  Fault fault = kNone;
  uint64_t fault_at = 0;
  bool stalled = false;
  Clock::time_point stalled_until;
  uint64_t trickle_left = 0;
  bool refused = false;  // the server is down
  bool discard = false;  // half-closed towards the proxy by a fault: what still comes for it goes nowhere
};

class Witness {
 public:
  Witness(bool front, const std::string& listen_at, const std::string& connect_to, const std::string& log,
          uint64_t seed, unsigned faults_per_thousand)
      : front_(front), upstream_(address_of(connect_to)), random_(seed), faults_per_thousand_(faults_per_thousand) {
    log_ = std::fopen(log.c_str(), "w");
    if (log_ == nullptr) fail(log);
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    const auto address = address_of(listen_at);
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) fail("bind " + listen_at);
    if (listen(listener_, 1024) != 0) fail("listen");
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    watch(listener_);
    watch(signals_);
    std::printf("listening on %s\n", text_of(listener_, getsockname).c_str());
    std::fflush(stdout);
  }

  void run() {
    auto next_line = Clock::now() + std::chrono::seconds(1);
    while (!ended_) {
      std::array<epoll_event, 256> events;
      const int count = epoll_wait(epoll_, events.data(), events.size(), 100);
      for (int i = 0; i < count; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == listener_) {
          accept_all();
        } else if (fd == signals_) {
          on_signal();
        } else if (const auto found = by_fd_.find(fd); found != by_fd_.end()) {
          on_event(*found->second, fd == found->second->fd[kProxy] ? kProxy : kPeer,
                   events[static_cast<std::size_t>(i)].events);
        }
      }
      end_stalls();
      if (Clock::now() >= next_line) {
        next_line += std::chrono::seconds(1);
        tell();
      }
    }
    std::vector<Pair*> left;
    for (const auto& [number, pair] : pairs_) left.push_back(pair.get());
    for (auto* pair : left) finish(*pair, "open", false);
    tell();
    if (std::fclose(log_) != 0) fail("the log");
  }

 private:
  void watch(int fd) const {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  void on_signal() {
    signalfd_siginfo got{};
    while (read(signals_, &got, sizeof(got)) == sizeof(got)) {
      if (got.ssi_signo == SIGUSR1 && listener_ >= 0) {
        accept_all();
        close(std::exchange(listener_, -1));
      } else if (got.ssi_signo != SIGUSR1) {
        ended_ = true;
      }
    }
  }

  void accept_all() {
    for (;;) {
      sockaddr_in from{};  // a peer that resets at once leaves a socket that does not know it any more
      socklen_t from_size = sizeof(from);
      const int fd = accept4(listener_, reinterpret_cast<sockaddr*>(&from), &from_size, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) {
        if (errno == EAGAIN || errno == ECONNABORTED) return;
        fail("accept");
      }
      const int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      if (other < 0) fail("socket");
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      setsockopt(other, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      auto pair = std::make_unique<Pair>();
      pair->number = ++connections_;
      if (front_) {
        // An address of its own for every connection, so that a port used again names another one.
        setsockopt(other, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
        sockaddr_in own{};
        own.sin_family = AF_INET;
        own.sin_addr.s_addr = htonl(0x7f010001 + static_cast<uint32_t>(pair->number));
        if (bind(other, reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0) fail("bind");
      }
      connect(other, reinterpret_cast<const sockaddr*>(&upstream_), sizeof(upstream_));
      pair->fd[front_ ? kPeer : kProxy] = fd;
      pair->fd[front_ ? kProxy : kPeer] = other;
      pair->connected[front_ ? kPeer : kProxy] = true;
      pair->name = front_ ? "" : text_of(from);
      choose_fault(*pair);
      pair->sent.keep_checkpoints();
      for (const int one : pair->fd) {
        by_fd_[one] = pair.get();
        epoll_event event{.events = 0, .data = {.fd = one}};
        epoll_ctl(epoll_, EPOLL_CTL_ADD, one, &event);
      }
      update(*pair);
      pairs_[pair->number] = std::move(pair);
    }
  }

  void choose_fault(Pair& pair) {
    if (random_() % 1000 >= faults_per_thousand_) return;
    pair.fault = static_cast<Fault>(1 + random_() % (kFaults - 1));
    // Small places are as likely as large ones: a few bytes, or a few MiB.
    const double exponent = std::uniform_real_distribution<double>(0, 22)(random_);
    pair.fault_at = static_cast<uint64_t>(std::exp2(exponent)) - 1;
  }

  // False: the pair is gone.
  bool apply_fault(Pair& pair) {
    // Behind the proxy not before its first byte: until then it may not know yet that it is connected.
    if (!front_ && pair.received.bytes() == 0) return true;
    if (pair.fault == kNone || !pair.connected[kProxy] || pair.sent.bytes() + pair.received.bytes() < pair.fault_at) {
      return true;
    }
    const auto fault = std::exchange(pair.fault, kNone);
    ++faults_[fault];
    switch (fault) {
      case kReset: finish(pair, "reset by us", true); return false;
      case kHalfClose:
        if (!std::exchange(pair.shut[kProxy], true)) shutdown(pair.fd[kProxy], SHUT_WR);
        pair.discard = true;
        break;
      case kStall:
        pair.stalled = true;
        pair.stalled_until = Clock::now() + std::chrono::milliseconds(500 + random_() % 6000);
        stalled_.push_back(pair.number);
        break;
      case kTrickle: pair.trickle_left = 500 + random_() % 4000; break;
      default: break;
    }
    return true;
  }

  void end_stalls() {
    const auto now = Clock::now();
    std::erase_if(stalled_, [&](uint64_t number) {
      const auto found = pairs_.find(number);
      if (found == pairs_.end()) return true;
      auto& pair = *found->second;
      if (pair.stalled && now < pair.stalled_until) return false;
      pair.stalled = false;
      update(pair);
      return true;
    });
  }

  void on_event(Pair& pair, int side, uint32_t events) {
    const bool broken = events & (EPOLLERR | EPOLLHUP);
    if (!pair.connected[side]) {
      int error = 0;
      socklen_t size = sizeof(error);
      getsockopt(pair.fd[side], SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0 && !front_ && pair.received.bytes() == 0 && !pair.eof[kProxy]) {
        pair.refused = true;
        epoll_ctl(epoll_, EPOLL_CTL_DEL, pair.fd[side], nullptr);
        return;
      }
      if (error != 0) return finish(pair, "not connected", true);
      if (!(events & EPOLLOUT)) return;
      pair.connected[side] = true;
      if (side == kProxy) pair.name = text_of(pair.fd[kProxy], getsockname);
    }
    if (broken && side == kProxy) pair.stalled = false;
    if ((events & EPOLLIN) || broken) {
      if (!read_from(pair, side, broken)) return;
    }
    if (pair.refused && (pair.received.bytes() > 0 || pair.eof[kProxy])) return finish(pair, "not connected", true);
    if (!pass_on(pair)) return;
    if (!apply_fault(pair)) return;
    update(pair);
  }

  [[nodiscard]] static bool holds(const Pair& pair, int side) { return pair.taken[side] < pair.held[side].size(); }

  // False: the pair is gone. `all`: whatever the kernel has, for the socket is broken and would wake us for ever.
  bool read_from(Pair& pair, int side, bool all) {
    if (all && pair.eof[side] && !pair.shut[side]) return finish(pair, "reset after its end", true), false;
    if (pair.eof[side] || (holds(pair, side) && !all)) return true;
    auto& held = pair.held[side];
    if (!holds(pair, side)) {
      held.clear();
      pair.taken[side] = 0;
    }
    do {
      const auto before = held.size();
      held.resize(before + kMostHeld);
      const ssize_t size = recv(pair.fd[side], held.data() + before, kMostHeld, 0);
      held.resize(before + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
      if (size > 0) {
        if (side == kProxy) pair.received.add(held.data() + before, static_cast<std::size_t>(size));
        bytes_ += static_cast<uint64_t>(size) * (side == kProxy);
        continue;
      }
      if (size == 0) {
        pair.eof[side] = true;
        return true;
      }
      if (errno == EAGAIN || errno == EINTR) return true;
      const auto reason = std::string(side == kProxy ? "proxy: " : "peer: ") + strerrorname_np(errno);
      return finish(pair, reason, true), false;
    } while (all);
    return true;
  }

  // Writes what is held, passes ends on. False: the pair is gone.
  bool pass_on(Pair& pair) {
    for (const int from : {kProxy, kPeer}) {
      const int to = 1 - from;
      if (!pair.connected[to]) continue;
      if (to == kProxy && pair.discard) pair.taken[from] = pair.held[from].size();
      while (holds(pair, from)) {
        auto size = pair.held[from].size() - pair.taken[from];
        const bool trickle = to == kProxy && pair.trickle_left > 0;
        if (trickle) size = 1;
        const auto* bytes = pair.held[from].data() + pair.taken[from];
        const ssize_t went = send(pair.fd[to], bytes, size, MSG_NOSIGNAL);
        if (went < 0) {
          if (errno == EAGAIN) break;
          return finish(pair, std::string(to == kProxy ? "to proxy: " : "to peer: ") + strerrorname_np(errno), true),
                 false;
        }
        if (to == kProxy) {
          pair.sent.add(bytes, static_cast<std::size_t>(went));
          bytes_ += static_cast<uint64_t>(went);
        }
        pair.taken[from] += static_cast<std::size_t>(went);
        if (trickle && --pair.trickle_left > 0) break;
      }
      if (pair.eof[from] && !holds(pair, from) && !std::exchange(pair.shut[to], true)) {
        shutdown(pair.fd[to], SHUT_WR);
      }
    }
    if (pair.eof[kProxy] && pair.eof[kPeer] && !holds(pair, kProxy) && !holds(pair, kPeer)) {
      return finish(pair, pair.discard ? "half-closed" : "clean", false), false;
    }
    return true;
  }

  void update(Pair& pair) {
    for (const int side : {kProxy, kPeer}) {
      uint32_t wanted = 0;
      if (pair.eof[side] && pair.shut[side]) {  // over both ways: it would hang up for ever
        epoll_ctl(epoll_, EPOLL_CTL_DEL, pair.fd[side], nullptr);
        continue;
      }
      if (!pair.connected[side]) {
        wanted = EPOLLOUT;
      } else {
        if (!pair.eof[side] && !holds(pair, side) && !(side == kProxy && pair.stalled)) wanted |= EPOLLIN;
        if (holds(pair, 1 - side)) wanted |= EPOLLOUT;
      }
      if (wanted == pair.interest[side]) continue;
      pair.interest[side] = wanted;
      epoll_event event{.events = wanted, .data = {.fd = pair.fd[side]}};
      epoll_ctl(epoll_, EPOLL_CTL_MOD, pair.fd[side], &event);
    }
  }

  void finish(Pair& pair, std::string end, bool reset) {
    // The proxy is told to end: its FINs are its own, and what is on its way to it then is not read any more.
    if (end == "clean" && listener_ < 0) end = "ended";
    if (pair.connected[kProxy] && end != "clean") {  // what has come and was not read yet
      char buffer[4096];
      ssize_t size = 0;
      while ((size = recv(pair.fd[kProxy], buffer, sizeof(buffer), 0)) > 0) {
        pair.received.add(buffer, static_cast<std::size_t>(size));
      }
    }
    if (pair.name.empty()) pair.name = text_of(pair.fd[kProxy], getsockname);  // over before we saw it connected
    if (!pair.name.empty()) {
      std::fprintf(log_, "%llu\t%s\t%llu\t%016llx\t%llu\t%016llx\t%s\t", static_cast<unsigned long long>(pair.number),
                   pair.name.c_str(), static_cast<unsigned long long>(pair.sent.bytes()),
                   static_cast<unsigned long long>(pair.sent.hash()),
                   static_cast<unsigned long long>(pair.received.bytes()),
                   static_cast<unsigned long long>(pair.received.hash()), end.c_str());
      if (end == "clean" || pair.sent.checkpoints().empty()) {
        std::fputs("-", log_);
      } else {
        const char* comma = "";
        for (const auto hash : pair.sent.checkpoints()) {
          std::fprintf(log_, "%s%llx", comma, static_cast<unsigned long long>(hash));
          comma = ",";
        }
      }
      std::fputc('\n', log_);
    }
    for (const int fd : pair.fd) {
      const linger now{.l_onoff = 1, .l_linger = 0};
      if (reset) setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
      by_fd_.erase(fd);
      close(fd);
    }
    pairs_.erase(pair.number);
  }

  void tell() const {
    std::printf("{\"connections\": %llu, \"open\": %zu, \"bytes\": %llu", static_cast<unsigned long long>(connections_),
                pairs_.size(), static_cast<unsigned long long>(bytes_));
    for (std::size_t i = 1; i < kFaults; ++i) {
      std::printf(", \"%s\": %llu", kFaultNames[i], static_cast<unsigned long long>(faults_[i]));
    }
    std::printf("}\n");
    std::fflush(stdout);
  }

  const bool front_;
  const sockaddr_in upstream_;
  std::mt19937_64 random_;
  const unsigned faults_per_thousand_;
  FILE* log_ = nullptr;
  int epoll_ = -1;
  int listener_ = -1;
  int signals_ = -1;
  bool ended_ = false;
  uint64_t connections_ = 0;
  uint64_t bytes_ = 0;  // both ways, at the proxy's side
  std::array<uint64_t, kFaults> faults_{};
  std::unordered_map<uint64_t, std::unique_ptr<Pair>> pairs_;
  std::unordered_map<int, Pair*> by_fd_;
  std::vector<uint64_t> stalled_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7 || (std::strcmp(argv[1], "front") != 0 && std::strcmp(argv[1], "back") != 0)) {
    std::fprintf(stderr, "Usage: soak_witness front|back LISTEN CONNECT LOG SEED FAULTS_PER_THOUSAND\n");
    return 2;
  }
  rlimit most{};
  getrlimit(RLIMIT_NOFILE, &most);
  most.rlim_cur = most.rlim_max;
  setrlimit(RLIMIT_NOFILE, &most);
  Witness(std::strcmp(argv[1], "front") == 0, argv[2], argv[3], argv[4], std::stoull(argv[5]),
          static_cast<unsigned>(std::stoul(argv[6])))
      .run();
  return 0;
}
