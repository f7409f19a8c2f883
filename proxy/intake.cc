#include "proxy/intake.h"

#include <algorithm>
#include <utility>

namespace ztape::proxy {
namespace {

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

Intake::Intake(net::Loop& loop, OnArrival on_arrival, OnProblem on_problem)
    : loop_(loop), on_arrival_(std::move(on_arrival)), on_problem_(std::move(on_problem)) {}

Intake::~Intake() = default;

Result<std::unique_ptr<Intake>> Intake::listen(net::Loop& loop, const std::vector<Route>& routes, OnArrival on_arrival,
                                               OnProblem on_problem) {
  std::unique_ptr<Intake> intake(new Intake(loop, std::move(on_arrival), std::move(on_problem)));
  for (const auto& route : routes) {
    if (auto listening = intake->listen_for(route); !listening) return std::unexpected(std::move(listening.error()));
  }
  for (std::size_t i = 0; i < routes.size(); ++i) {
    if (auto fine = intake->check_that_it_ends(routes, i); !fine) return std::unexpected(std::move(fine.error()));
  }
  return intake;
}

// That no connection of route `first` comes in again, through whatever other routes, at its own listener.
Result<void> Intake::check_that_it_ends(const std::vector<Route>& routes, std::size_t first) const {
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
    auto listener = net::TcpListener::listen(loop_, address, [this, destination = route.destination](auto connection) {
      on_arrival_({.downstream = std::move(connection), .accepted = net::monotonic_now(), .destination = destination});
    });
    if (listener) {
      listeners_.push_back(std::move(*listener));
      return {};
    }
    error = std::move(listener.error());
  }
  return std::unexpected(std::move(error));
}

void Intake::stop() {
  listeners_.clear();
}

std::vector<std::string> Intake::local_texts() const {
  std::vector<std::string> texts;
  texts.reserve(listeners_.size());
  for (const auto& listener : listeners_) texts.push_back(listener->local_text());
  return texts;
}

}  // namespace ztape::proxy
