// Takes connections at the listeners of all routes and hands them on. Lives on the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/listener.h"
#include "net/loop.h"
#include "net/tcp.h"
#include "proto/error.h"
#include "proto/words.h"
#include "proxy/route.h"

namespace ztape::proxy {

// One connection that came in, not read from yet.
struct Arrival {
  std::unique_ptr<net::TcpConnection> downstream;
  MonotonicTime accepted;
  std::shared_ptr<const Destination> destination;
};

// Connections stay in the kernel's backlog while fewer file descriptors are left than a further one may need.
class Intake {
 public:
  using OnArrival = std::function<void(Arrival)>;
  using OnProblem = std::function<void(const std::string&)>;  // a line for the log

  // Binds every route's port; connections are taken when the loop runs. Errors: address.
  static Result<std::unique_ptr<Intake>> listen(net::Loop& loop, const std::vector<Route>& routes, OnArrival on_arrival,
                                                OnProblem on_problem);
  ~Intake();
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  // Takes no more.
  void stop();
  // A connection ended: there may be descriptors again. Otherwise that is noticed a little later.
  void look_for_room();
  // How often connections had to wait for descriptors.
  [[nodiscard]] uint64_t waits() const { return waits_; }
  // Where each route listens, in the order of the routes, with the port that port 0 became.
  [[nodiscard]] std::vector<std::string> local_texts() const;

 private:
  Intake(net::Loop& loop, OnArrival on_arrival, OnProblem on_problem);
  Result<void> listen_for(const Route& route);
  Result<void> check_that_it_ends(const std::vector<Route>& routes, std::size_t first) const;

  void accepted(Arrival arrival);
  [[nodiscard]] bool room_for_another() const;
  void wait_for_room();
  void look_again();
  void tell_that_some_wait();

  net::Loop& loop_;
  OnArrival on_arrival_;
  OnProblem on_problem_;
  std::vector<std::unique_ptr<net::TcpListener>> listeners_;
  net::Timer room_timer_;
  const int descriptor_limit_;
  int highest_fd_ = 0;
  bool waiting_ = false;  // all listeners are paused
  uint64_t waits_ = 0;
};

}  // namespace ztape::proxy
