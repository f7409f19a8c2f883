#include "proxy/proxy_server.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "proto/capture.pb.h"

namespace ztape::proxy {
namespace {

constexpr uint64_t kLoggedHandshakeFailures = 20;

// How long the traffic waits for a recorder that is to leave gaps rather than hold it, and how long it does not wait
// again after that was in vain: at most half a percent of the time.
constexpr int64_t kPatienceNs = 50'000'000;
constexpr int64_t kNoPatienceNs = 10'000'000'000;

void add(ProxyCounts& counts, const Relay& relay) {
  for (const auto direction : kDirections) counts.bytes[ztape::index(direction)] += relay.bytes(direction);
  counts.pauses += relay.pauses(Side::downstream) + relay.pauses(Side::upstream);
}

}  // namespace

ProxyServer::ProxyServer(net::Loop& loop, ProxyOptions options, std::function<void(const std::string&)> on_problem)
    : loop_(loop), options_(std::move(options)), on_problem_(std::move(on_problem)), patience_(loop) {}

ProxyServer::~ProxyServer() = default;

Result<std::unique_ptr<ProxyServer>> ProxyServer::listen(net::Loop& loop, ProxyOptions options,
                                                         std::function<void(const std::string&)> on_problem) {
  std::unique_ptr<ProxyServer> server(new ProxyServer(loop, std::move(options), std::move(on_problem)));
  auto intake = Intake::listen(
      loop, server->options_.intake, [raw = server.get()](Arrival arrival) { raw->accept(std::move(arrival)); },
      server->on_problem_);
  if (!intake) return std::unexpected(std::move(intake.error()));
  server->intake_ = std::move(*intake);
  server->intake_->set_is_own([raw = server.get()](const std::string& peer) {
    return std::ranges::any_of(raw->connections_,
                               [&](const auto& row) { return row.second->upstream_local() == peer; });
  });
  server->intake_->set_owed([raw = server.get()] {
    return static_cast<int>(
        std::ranges::count_if(raw->connections_, [](const auto& row) { return row.second->owes_upstream_socket(); }));
  });
  return server;
}

void ProxyServer::record_to(Recorder& recorder) {
  surroundings_ = std::make_unique<RelayedConnection::Surroundings>(
      RelayedConnection::Surroundings{.loop = loop_,
                                      .recorder = recorder,
                                      .options = options_,
                                      .on_failure = [this](Side side, const std::string& line) { failed(side, line); },
                                      .on_recorded = [this] { hold_if_full(); },
                                      .on_moved = [this](ConnectionId id) { sampler_->moved(id); },
                                      .on_finished = [this](ConnectionId id) { finished(id); }});
  room_wakeup_ = std::make_unique<net::Wakeup>(loop_, [this] { on_room(); });
  recorder.set_on_room([wakeup = room_wakeup_.get()] { wakeup->wake(); });
  loop_lag_ = std::make_unique<LoopLag>(recorder.opened());
  turn_watch_ = std::make_unique<net::TurnWatch>(
      loop_, [this](MonotonicTime began, MonotonicTime ended) { loop_lag_->turn(began, ended); });
  const auto on_interval = [this](MonotonicTime due, MonotonicTime now) {
    loop_lag_->timer(due, now);
    record_loop_lag(now);
  };
  sampler_ = std::make_unique<IntervalSampler>(
      loop_, IntervalSampler::Callbacks{.sample = [this](ConnectionId id) { sample(id); }, .on_interval = on_interval});
}

void ProxyServer::accept(Arrival arrival) {
  if (options_.max_connections > 0 && connections_.size() >= options_.max_connections) {
    if (counts_.turned_away++ == 0) {
      on_problem_("more than " + std::to_string(options_.max_connections) +
                  " connections (--max-connections): the others are turned away");
    }
    arrival.downstream->reset();
    return;
  }
  ++counts_.connections;
  const ConnectionId id = ++last_id_;
  auto& connection = connections_[id];
  connection = std::make_unique<RelayedConnection>(*surroundings_, id, std::move(arrival));
  if (holding_) connection->handle(event::RecorderFull{});
}

void ProxyServer::finished(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  add(counts_, found->second->relay());
  connections_.erase(found);
  intake_->look_for_room();
  if (connections_.empty() && on_empty_) std::exchange(on_empty_, nullptr)();
}

void ProxyServer::failed(Side side, const std::string& line) {
  if (side == Side::upstream) {
    ++counts_.upstream_failures;
    return on_problem_(line);
  }
  // Anybody can make these, as fast as he likes: the capture has them all, the log the first ones.
  const auto count = ++counts_.handshake_failures;
  if (count <= kLoggedHandshakeFailures) on_problem_(line);
  if (count == kLoggedHandshakeFailures)
    on_problem_("further TLS handshakes that fail are recorded and counted, not told");
}

// An event may end a connection, which takes it out of the map.
void ProxyServer::for_all(const std::function<Event()>& make_event) {
  std::vector<ConnectionId> ids;
  ids.reserve(connections_.size());
  for (const auto& [id, connection] : connections_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const auto id : ids) {
    if (const auto found = connections_.find(id); found != connections_.end()) found->second->handle(make_event());
  }
}

void ProxyServer::hold_if_full() {
  if (holding_ || !surroundings_->recorder.full()) return;
  holding_ = true;
  ++counts_.holds;
  if (!surroundings_->recorder.waits_without_end()) {
    patience_.start(kPatienceNs, [this] {
      surroundings_->recorder.give_way(MonotonicTime{net::monotonic_now().ns + kNoPatienceNs});
      on_room();
    });
  }
  for_all([] { return event::RecorderFull{}; });
}

void ProxyServer::on_room() {
  if (!std::exchange(holding_, false)) return;
  patience_.cancel();
  for_all([] { return event::RecorderRoom{}; });
}

void ProxyServer::sample(ConnectionId id) {
  if (const auto found = connections_.find(id); found != connections_.end()) found->second->sample();
}

void ProxyServer::record_loop_lag(MonotonicTime now) {
  capture::Record record;
  if (!loop_lag_->end_interval(now, *record.mutable_loop_lag())) return;
  surroundings_->recorder.record(std::move(record));
}

void ProxyServer::stop_taking(std::function<void()> on_empty) {
  intake_->stop();
  on_empty_ = std::move(on_empty);
}

void ProxyServer::stop() {
  on_empty_ = nullptr;
  intake_->stop();
  patience_.cancel();
  for_all([] { return event::Stop{net::monotonic_now()}; });
  if (loop_lag_) record_loop_lag(net::monotonic_now());
  if (room_wakeup_) room_wakeup_->let_loop_end();  // the recorder's thread may still wake it
}

ProxyCounts ProxyServer::counts() const {
  ProxyCounts all = counts_;
  all.intake = intake_->counts();
  for (const auto& [id, connection] : connections_) add(all, connection->relay());
  return all;
}

}  // namespace ztape::proxy
