// Takes connections at the listeners of all routes, learns where they come from and where they go, and hands them on.
// Lives on the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/listener.h"
#include "net/loop.h"
#include "net/tcp.h"
#include "proto/error.h"
#include "proto/words.h"
#include "proxy/proxy_header_wait.h"
#include "proxy/route.h"

namespace ztape::proxy {

struct IntakeOptions {
  std::vector<Route> routes;
  // A rule of the firewall sends connections here: they go on to where they wanted to go (docs/transparent.md).
  bool transparent = false;
  bool proxy_protocol = false;                        // every connection begins with a balancer's PROXY header
  int64_t proxy_header_patience_ns = 10'000'000'000;  // for the whole header
};

// One connection that came in; what the wallet sends was not read yet.
struct Arrival {
  std::unique_ptr<net::TcpConnection> downstream;
  MonotonicTime accepted;
  std::shared_ptr<const Destination> destination;
  bool tls = false;            // the wallet is to speak TLS
  std::string announced_peer;  // by the PROXY header; "" for none
};

struct IntakeCounts {
  uint64_t descriptor_waits = 0;   // how often connections had to wait for file descriptors
  uint64_t no_destination = 0;     // transparent: connections closed because they were meant for us
  uint64_t bad_proxy_headers = 0;  // connections closed because of that
};

// Connections stay in the kernel's backlog while fewer file descriptors are left than a further one may need.
class Intake {
 public:
  using OnArrival = std::function<void(Arrival)>;
  using OnProblem = std::function<void(const std::string&)>;  // a line for the log

  // Binds every route's port; connections are taken when the loop runs. Errors: address.
  static Result<std::unique_ptr<Intake>> listen(net::Loop& loop, const IntakeOptions& options, OnArrival on_arrival,
                                                OnProblem on_problem);
  ~Intake();
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  // Asked with a connection's peer whether that is a socket of this proxy towards an indexer: then the firewall's rule
  // takes our own connections too, and they would go round for ever. For transparent mode.
  void set_is_own(std::function<bool(const std::string& peer)> is_own) { is_own_ = std::move(is_own); }
  // Asked, near the limit, how many descriptors the connections that were handed on will still open.
  void set_owed(std::function<int()> owed) { owed_ = std::move(owed); }
  // Whether TPROXY rules work too: IP_TRANSPARENT needs CAP_NET_RAW.
  [[nodiscard]] bool takes_tproxy() const;
  // Takes no more; what has not arrived yet is closed.
  void stop();
  // A connection ended: there may be descriptors again. Otherwise that is noticed a little later.
  void look_for_room();
  // Where each route listens, in the order of the routes, with the port that port 0 became.
  [[nodiscard]] std::vector<std::string> local_texts() const;
  [[nodiscard]] const IntakeCounts& counts() const { return counts_; }

 private:
  Intake(net::Loop& loop, const IntakeOptions& options, OnArrival on_arrival, OnProblem on_problem);
  Result<void> listen_for(const Route& route);
  Result<void> check_that_it_ends(std::size_t first) const;
  void accepted(std::unique_ptr<net::TcpConnection> connection, const Route& route);
  Result<std::shared_ptr<const Destination>> find_destination(const net::TcpConnection& connection, bool tls) const;
  void wait_for_header(Arrival arrival);
  void tell_refusal(uint64_t number, const std::string& peer, const std::string& why);
  void header_done(uint64_t wait, ProxyHeaderWait::Outcome outcome);
  [[nodiscard]] bool room_for_another() const;
  void wait_for_room();
  void look_again();
  void tell_that_some_wait();

  net::Loop& loop_;
  const IntakeOptions options_;
  OnArrival on_arrival_;
  OnProblem on_problem_;
  std::function<bool(const std::string&)> is_own_ = [](const std::string&) { return false; };
  std::function<int()> owed_ = [] { return 0; };
  std::vector<std::unique_ptr<net::TcpListener>> listeners_;
  struct Waiting {
    Arrival arrival;  // without its socket
    std::string peer;
    std::unique_ptr<ProxyHeaderWait> header;
  };
  std::unordered_map<uint64_t, Waiting> waiting_for_header_;
  uint64_t last_wait_ = 0;
  net::Timer room_timer_;
  const int descriptor_limit_;
  int highest_fd_ = 0;
  bool waiting_for_room_ = false;  // all listeners are paused
  IntakeCounts counts_;
};

}  // namespace ztape::proxy
