#include "proxy/intake.h"

#include <sys/resource.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "net/descriptor.h"
#include "net/original_destination.h"

namespace ztape::proxy {
namespace {

// Besides what a connection takes: files of the recorder, and those who look at the statistics.
constexpr int kSpare = 8;
// A connection's two, and the spare ones.
constexpr int kNeeded = 2 + kSpare;
constexpr uint64_t kToldRefusals = 10;
constexpr int64_t kRoomCheckNs = 20'000'000;

int read_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX) return INT_MAX;
  return static_cast<int>(limit.rlim_cur);
}

std::string port_of(const std::string& address) {
  return address.substr(address.rfind(':'));
}

bool is_everywhere(const std::string& address) {
  return address.starts_with("[::]:") || address.starts_with("0.0.0.0:");
}

// Whether a connection to `upstream` would come in at the listener at `listening`, and so on without end.
bool leads_back(const std::string& upstream, const std::string& listening) {
  if (upstream == listening) return true;
  const bool to_this_machine =
      upstream.starts_with("127.") || upstream.starts_with("[::1]:") || is_everywhere(upstream);
  return to_this_machine && port_of(upstream) == port_of(listening) &&
         (is_everywhere(listening) || is_everywhere(upstream));
}

// The same of an address that a connection was sent to.
bool is_ourselves(const net::SocketAddress& destination, const std::string& listening) {
  const auto text = destination.text();
  if (text == listening) return true;
  return port_of(text) == port_of(listening) && is_everywhere(listening) &&
         net::is_address_of_this_machine(destination);
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
  for (std::size_t i = 0; i < intake->listeners_.size() && !options.transparent; ++i) {
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
  const auto take = [this, &route](auto connection) { accepted(std::move(connection), route); };
  const net::ListenOptions options{.transparent = options_.transparent};
  Result<std::unique_ptr<net::TcpListener>> listener =
      std::unexpected(Error{.code = ErrorCode::address, .message = "no address to listen on", .subject = ""});
  if (route.passed_socket >= 0) {
    listener = net::TcpListener::adopt(loop_, net::Descriptor(route.passed_socket), take, options);
  }
  for (const auto& address : route.listen_addresses) {
    if (listener || route.passed_socket >= 0) break;
    listener = net::TcpListener::listen(loop_, address, take, options);
  }
  if (!listener) return std::unexpected(std::move(listener.error()));
  (*listener)->set_on_exhausted([this](const std::string&) { tell_that_some_wait(); });
  listeners_.push_back(std::move(*listener));
  return {};
}

void Intake::accepted(std::unique_ptr<net::TcpConnection> connection, const Route& route) {
  highest_fd_ = std::max(highest_fd_, connection->fd());
  Arrival arrival{.downstream = std::move(connection),
                  .accepted = net::monotonic_now(),
                  .destination = route.destination,
                  .tls = route.tls,
                  .announced_peer = ""};
  if (options_.transparent) {
    auto destination = find_destination(*arrival.downstream, route.tls);
    if (!destination) {
      tell_refusal(++counts_.no_destination, arrival.downstream->peer_text(), destination.error().line());
      return arrival.downstream->reset();
    }
    arrival.destination = std::move(*destination);
  }
  if (options_.proxy_protocol) {
    wait_for_header(std::move(arrival));
  } else {
    on_arrival_(std::move(arrival));
  }
  if (!room_for_another()) wait_for_room();
}

Result<std::shared_ptr<const Destination>> Intake::find_destination(const net::TcpConnection& connection,
                                                                    bool tls) const {
  auto address = net::original_destination(connection.fd());
  const auto text = address.text();
  const auto refuse = [&text](const std::string& why) {
    return std::unexpected(Error{.code = ErrorCode::address, .message = why, .subject = text});
  };
  if (text.empty()) return refuse("it was gone at once");
  for (const auto& listener : listeners_) {
    if (!is_ourselves(address, listener->local_text())) continue;
    return refuse(
        "it was not redirected but came straight to the proxy, which has nowhere to send it: see "
        "docs/transparent.md for the firewall's rules, and point the wallet at the indexer");
  }
  if (is_own_(connection.peer_text())) {
    return refuse("it is the proxy's own connection, redirected to itself: the rule must leave the proxy's user out");
  }
  net::Url url;
  url.host = address.host();
  url.port = address.port();
  url.tls = tls;
  url.text = (tls ? "https://" : "http://") + text;
  return std::make_shared<const Destination>(
      Destination{.url = std::move(url), .addresses = {std::move(address)}, .server_name = ""});
}

bool Intake::takes_tproxy() const {
  return std::ranges::all_of(listeners_, [](const auto& listener) { return listener->transparent(); });
}

// Whoever can connect could fill the log.
void Intake::tell_refusal(uint64_t number, const std::string& peer, const std::string& why) {
  if (number > kToldRefusals) return;
  on_problem_("a connection from " + peer + " is closed: " + why +
              (number == kToldRefusals ? " (others like it are only counted)" : ""));
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
  if (!outcome.silent) tell_refusal(++counts_.bad_proxy_headers, waiting.peer, outcome.problem);
  outcome.connection->reset();
  look_for_room();
}

bool Intake::room_for_another() const {
  // The kernel gives the lowest free number: far below the limit there is no need to try.
  const int waiting = static_cast<int>(waiting_for_header_.size());
  if (highest_fd_ + kNeeded + waiting < descriptor_limit_ / 2) return true;
  return net::descriptors_left(kNeeded + waiting + owed_());
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
