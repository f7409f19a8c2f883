#include "proxy/intake.h"

#include <sys/resource.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "net/descriptor.h"

namespace ztape::proxy {
namespace {

// Besides what a connection takes: files of the recorder, and those who look at the statistics.
constexpr int kSpare = 8;
// A connection's two, and the spare ones.
constexpr int kNeeded = 2 + kSpare;
constexpr uint64_t kToldHeaders = 10;
constexpr int64_t kRoomCheckNs = 20'000'000;

int read_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX) return INT_MAX;
  return static_cast<int>(limit.rlim_cur);
}

// Whether a connection to `upstream` would come in at the listener at `listening`, and so on without end.
bool leads_back(const std::string& upstream, const std::string& listening) {
  if (upstream == listening) return true;
  const auto port = [](const std::string& text) { return text.substr(text.rfind(':')); };
  const auto everywhere = [](const std::string& text) {
    return text.starts_with("[::]:") || text.starts_with("0.0.0.0:");
  };
  const bool to_this_machine = upstream.starts_with("127.") || upstream.starts_with("[::1]:") || everywhere(upstream);
  return to_this_machine && port(upstream) == port(listening) && (everywhere(listening) || everywhere(upstream));
}

}  // namespace

Intake::Intake(net::Loop& loop, const IntakeOptions& options, OnArrival on_arrival, OnProblem on_problem)
    : loop_(loop),
      options_(options),
      on_arrival_(std::move(on_arrival)),
      on_problem_(std::move(on_problem)),
      room_timer_(loop),
      descriptor_limit_(read_descriptor_limit()) {}

Intake::~Intake() = default;

Result<std::unique_ptr<Intake>> Intake::listen(net::Loop& loop, const IntakeOptions& options, OnArrival on_arrival,
                                               OnProblem on_problem) {
  std::unique_ptr<Intake> intake(new Intake(loop, options, std::move(on_arrival), std::move(on_problem)));
  for (const auto& route : intake->options_.routes) {
    if (auto listening = intake->listen_for(route); !listening) return std::unexpected(std::move(listening.error()));
  }
  for (std::size_t i = 0; i < intake->listeners_.size(); ++i) {
    if (auto fine = intake->check_that_it_ends(i); !fine) return std::unexpected(std::move(fine.error()));
  }
  return intake;
}

// That no connection of route `first` comes in again, through whatever other routes, at its own listener.
Result<void> Intake::check_that_it_ends(std::size_t first) const {
  const auto& routes = options_.routes;
  std::vector<std::size_t> reached{first};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const auto& upstream : routes[reached[i]].destination->addresses) {
      for (std::size_t next = 0; next < routes.size(); ++next) {
        if (!leads_back(upstream.text(), listeners_[next]->local_text())) continue;
        if (next == first) {
          return std::unexpected(
              Error{.code = ErrorCode::address,
                    .message = "is where this proxy itself listens; the indexer needs another address",
                    .subject = (routes.size() > 1 ? "--route to " : "--upstream ") + upstream.text()});
        }
        if (std::ranges::find(reached, next) == reached.end()) reached.push_back(next);
      }
    }
  }
  return {};
}

Result<void> Intake::listen_for(const Route& route) {
  Error error{.code = ErrorCode::address, .message = "no address to listen on", .subject = ""};
  for (const auto& address : route.listen_addresses) {
    auto listener = net::TcpListener::listen(
        loop_, address, [this, &route](auto connection) { accepted(std::move(connection), route); });
    if (listener) {
      (*listener)->set_on_exhausted([this](const std::string&) { tell_that_some_wait(); });
      listeners_.push_back(std::move(*listener));
      return {};
    }
    error = std::move(listener.error());
  }
  return std::unexpected(std::move(error));
}

void Intake::accepted(std::unique_ptr<net::TcpConnection> connection, const Route& route) {
  highest_fd_ = std::max(highest_fd_, connection->fd());
  Arrival arrival{.downstream = std::move(connection),
                  .accepted = net::monotonic_now(),
                  .destination = route.destination,
                  .tls = route.tls,
                  .announced_peer = ""};
  if (options_.proxy_protocol) {
    wait_for_header(std::move(arrival));
  } else {
    on_arrival_(std::move(arrival));
  }
  if (!room_for_another()) wait_for_room();
}

void Intake::wait_for_header(Arrival arrival) {
  const auto wait = ++last_wait_;
  auto& waiting = waiting_for_header_[wait];
  waiting.peer = arrival.downstream->peer_text();
  waiting.header = std::make_unique<ProxyHeaderWait>(
      loop_, std::move(arrival.downstream), options_.proxy_header_patience_ns,
      [this, wait](ProxyHeaderWait::Outcome outcome) { header_done(wait, std::move(outcome)); });
  waiting.arrival = std::move(arrival);
}

void Intake::header_done(uint64_t wait, ProxyHeaderWait::Outcome outcome) {
  auto waiting = std::move(waiting_for_header_.extract(wait).mapped());  // we are in a callback of it
  if (outcome.problem.empty()) {
    waiting.arrival.downstream = std::move(outcome.connection);
    waiting.arrival.announced_peer = std::move(outcome.source);
    return on_arrival_(std::move(waiting.arrival));
  }
  if (!outcome.silent) {
    const auto told = ++counts_.bad_proxy_headers;
    if (told <= kToldHeaders) {
      on_problem_("a connection from " + waiting.peer + " is closed: " + outcome.problem +
                  (told == kToldHeaders ? " (others like it are only counted)" : ""));
    }
  }
  outcome.connection->reset();
  look_for_room();
}

bool Intake::room_for_another() const {
  // Those that wait for their header have no upstream socket yet.
  const int needed = kNeeded + static_cast<int>(waiting_for_header_.size());
  // The kernel gives the lowest free number: far below the limit there is no need to try.
  if (highest_fd_ + needed < descriptor_limit_ / 2) return true;
  return net::descriptors_left(needed);
}

void Intake::wait_for_room() {
  if (std::exchange(waiting_for_room_, true)) return;
  for (const auto& listener : listeners_) listener->pause();
  tell_that_some_wait();
  room_timer_.start(kRoomCheckNs, [this] { look_again(); });
}

void Intake::look_for_room() {
  if (!waiting_for_room_ || !room_for_another()) return;
  waiting_for_room_ = false;
  room_timer_.cancel();
  for (const auto& listener : listeners_) listener->resume();
}

void Intake::look_again() {
  look_for_room();
  if (waiting_for_room_) room_timer_.start(kRoomCheckNs, [this] { look_again(); });
}

void Intake::tell_that_some_wait() {
  if (counts_.descriptor_waits++ > 0) return;
  on_problem_("nearly out of file descriptors (the limit, ulimit -n, is " + std::to_string(descriptor_limit_) +
              "): further connections wait in the kernel's queue until others end");
}

void Intake::stop() {
  waiting_for_room_ = false;
  room_timer_.cancel();
  listeners_.clear();
  waiting_for_header_.clear();
}

std::vector<std::string> Intake::local_texts() const {
  std::vector<std::string> texts;
  texts.reserve(listeners_.size());
  for (const auto& listener : listeners_) texts.push_back(listener->local_text());
  return texts;
}

}  // namespace ztape::proxy
