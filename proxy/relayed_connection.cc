#include "proxy/relayed_connection.h"

#include <utility>

#include "proto/capture.pb.h"

namespace ztape::proxy {
namespace {

capture::Direction to_proto(Direction direction) {
  return direction == Direction::client_to_server ? capture::CLIENT_TO_SERVER : capture::SERVER_TO_CLIENT;
}

capture::Side to_proto(Side side) {
  return side == Side::downstream ? capture::DOWNSTREAM : capture::UPSTREAM;
}

void fill(capture::SocketOptions& out, const net::SocketOptions& options, const net::Connection& socket) {
  out.set_nodelay(options.nodelay);
  out.set_quickack_every_read(options.quickack_every_read);
  out.set_congestion_control(socket.congestion_control());
}

void fill(capture::TlsState& out, const net::TlsFacts& facts) {
  out.set_version(facts.version);
  out.set_cipher(facts.cipher);
  out.set_alpn(facts.alpn);
  out.set_server_name(facts.server_name);
  out.set_verification(facts.verification);
}

}  // namespace

RelayedConnection::RelayedConnection(const Surroundings& surroundings, ConnectionId id, Arrival arrival)
    : surroundings_(surroundings),
      id_(id),
      accepted_(arrival.accepted),
      destination_(std::move(arrival.destination)),
      announced_peer_(std::move(arrival.announced_peer)),
      downstream_peer_(arrival.downstream->peer_text()),
      handlers_{{*this, Side::downstream}, {*this, Side::upstream}} {
  const auto& options = surroundings_.options;
  // A peer that is gone already tells so itself.
  [[maybe_unused]] const auto set = arrival.downstream->set_options(options.downstream_options);
  opening_ =
      std::make_unique<Opening>(surroundings_.loop, options, destination_, std::move(arrival.downstream), arrival.tls,
                                sockets_, [this](Opening::Outcome outcome) { on_opened(std::move(outcome)); });
}

RelayedConnection::~RelayedConnection() = default;

std::string RelayedConnection::upstream_local() const {
  const auto& upstream = sockets_[index(Side::upstream)];
  if (upstream) return upstream->local_text();
  return opening_ ? opening_->upstream_local() : "";
}

void RelayedConnection::handle(Event event) {
  relay_.handle(std::move(event), actions_);
  // A Send may append the relay's answer to what it queued.
  for (std::size_t i = 0; i < actions_.size(); ++i) {  // NOLINT(modernize-loop-convert): the vector grows meanwhile
    Action next = std::move(actions_[i]);
    std::visit([this](auto& action) { execute(std::move(action)); }, next);
  }
  actions_.clear();
  // These may come back into handle(), or destroy this object: they stand last.
  if (recorded_ && !std::exchange(moved_, true)) surroundings_.on_moved(id_);
  if (std::exchange(recorded_, false)) surroundings_.on_recorded();
  if (relay_.finished()) surroundings_.on_finished(id_);
}

void RelayedConnection::sample() {
  moved_ = false;
  record_tcp_info();
}

void RelayedConnection::on_opened(Opening::Outcome outcome) {
  const auto now = net::monotonic_now();
  opening_.reset();
  record_open(outcome.upstream_peer);
  if (outcome.failed) {
    const std::string who = *outcome.failed == Side::upstream ? "upstream " : "wallet ";
    surroundings_.on_failure(*outcome.failed, "connection " + std::to_string(id_) + ": " + who + outcome.error);
    return handle(event::OpenFailed{*outcome.failed, std::move(outcome.error), now});
  }
  for (const Side side : {Side::downstream, Side::upstream}) socket(side)->set_handler(&handlers_[index(side)]);
  record_tcp_info();
  handle(event::Connected{now});
  if (!outcome.early_bytes.empty()) {
    handle(event::Bytes{Side::downstream, std::move(outcome.early_bytes), outcome.early_time});
  }
  if (outcome.early_eof) handle(event::Eof{Side::downstream, *outcome.early_eof});
}

void RelayedConnection::record_open(const std::string& upstream_peer) {
  open_recorded_ = true;
  const auto& options = surroundings_.options;
  capture::Record record;
  auto& open = *record.mutable_connection_open();
  open.set_connection(id_);
  open.set_time_ns(surroundings_.recorder.since_opened_ns(accepted_));
  const auto& downstream = *socket(Side::downstream);
  open.set_downstream_peer(announced_peer_.empty() ? downstream_peer_ : announced_peer_);
  if (!announced_peer_.empty()) open.set_downstream_balancer(downstream_peer_);
  open.set_downstream_local(downstream.local_text());
  fill(*open.mutable_downstream_options(), options.downstream_options, downstream);
  if (const auto* tls = downstream.tls()) fill(*open.mutable_downstream_tls(), *tls);
  open.set_upstream_url(destination_->url.text);
  open.set_upstream_peer(upstream_peer);
  if (const auto& upstream = socket(Side::upstream)) {
    open.set_upstream_local(upstream->local_text());
    fill(*open.mutable_upstream_options(), options.upstream_options, *upstream);
    if (const auto* tls = upstream->tls()) fill(*open.mutable_upstream_tls(), *tls);
  }
  surroundings_.recorder.record(std::move(record));
}

void RelayedConnection::record_tcp_info() {
  const auto now = net::monotonic_now();
  for (const Side side : {Side::downstream, Side::upstream}) {
    if (!socket(side)) continue;
    const auto sample = socket(side)->tcp_info();
    if (!sample) continue;
    capture::Record record;
    auto& out = *record.mutable_tcp_info();
    out.set_connection(id_);
    out.set_side(to_proto(side));
    out.set_time_ns(surroundings_.recorder.since_opened_ns(now));
    out.set_rtt_us(sample->rtt_us);
    out.set_rttvar_us(sample->rttvar_us);
    out.set_min_rtt_us(sample->min_rtt_us);
    out.set_snd_mss(sample->snd_mss);
    out.set_rcv_mss(sample->rcv_mss);
    out.set_snd_cwnd(sample->snd_cwnd);
    out.set_unacked(sample->unacked);
    out.set_total_retrans(sample->total_retrans);
    out.set_notsent_bytes(sample->notsent_bytes);
    out.set_ato_us(sample->ato_us);
    out.set_bytes_acked(sample->bytes_acked);
    out.set_bytes_received(sample->bytes_received);
    surroundings_.recorder.record(std::move(record));
  }
}

void RelayedConnection::execute(action::StartReading&& action) {
  if (socket(action.from)) socket(action.from)->start_reading();
}

void RelayedConnection::execute(action::PauseReading&& action) {
  if (socket(action.from)) socket(action.from)->pause_reading();
}

void RelayedConnection::execute(action::Send&& action) {
  auto& to = *socket(action.to);
  to.write({&action.bytes, 1});
  if (const std::size_t queued = to.queued_bytes(); queued > 0) {
    relay_.handle(event::Queued{action.to, queued}, actions_);
  }
}

void RelayedConnection::execute(action::HalfClose&& action) {
  if (action.truncated) return socket(action.to)->half_close_truncated();
  socket(action.to)->half_close();
}

void RelayedConnection::execute(action::CloseAfterDrain&& action) {
  if (socket(action.side)) net::Connection::close_after_drain(std::move(socket(action.side)));
}

void RelayedConnection::execute(action::ResetAfterDrain&& action) {
  if (socket(action.side)) net::Connection::reset_after_drain(std::move(socket(action.side)));
}

void RelayedConnection::execute(action::Drop&& action) {
  socket(action.side).reset();
}

void RelayedConnection::execute(action::RecordChunk&& action) {
  recorded_ = true;
  surroundings_.recorder.chunk(id_, action.direction, action.offset, std::move(action.bytes), action.time);
}

void RelayedConnection::execute(action::RecordEnd&& action) {
  capture::Record record;
  auto& chunk = *record.mutable_chunk();
  chunk.set_connection(id_);
  chunk.set_direction(to_proto(action.direction));
  chunk.set_offset(action.offset);
  chunk.set_time_ns(surroundings_.recorder.since_opened_ns(action.time));
  chunk.set_end(static_cast<capture::End>(action.end));
  chunk.set_error(action.error);
  surroundings_.recorder.record(std::move(record));
}

void RelayedConnection::execute(action::RecordClose&& action) {
  if (!open_recorded_) record_open("");  // stopped before upstream answered
  record_tcp_info();
  capture::Record record;
  auto& close = *record.mutable_connection_close();
  close.set_connection(id_);
  close.set_time_ns(surroundings_.recorder.since_opened_ns(action.time));
  if (action.first_side) close.set_first_side(to_proto(*action.first_side));
  close.set_error(action.error);
  surroundings_.recorder.record(std::move(record));
}

void RelayedConnection::SideHandler::on_read(net::Slice bytes, MonotonicTime time) {
  owner.handle(event::Bytes{side, std::move(bytes), time});
}

void RelayedConnection::SideHandler::on_eof(MonotonicTime time) {
  owner.handle(event::Eof{side, time, owner.socket(side)->truncated()});
}

void RelayedConnection::SideHandler::on_error(const std::string& system_error, MonotonicTime time) {
  owner.handle(event::Failed{side, system_error, time});
}

void RelayedConnection::SideHandler::on_drained() {
  owner.handle(event::Drained{side});
}

}  // namespace ztape::proxy
