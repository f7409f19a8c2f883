#include "proxy/relay.h"

#include <utility>

namespace ztape::proxy {

std::string_view name(Side side) {
  return side == Side::downstream ? "downstream" : "upstream";
}

void Relay::handle(Event event, std::vector<Action>& actions) {
  if (finished_) return;
  actions_ = &actions;
  std::visit([this]<class One>(One&& one) { on(std::forward<One>(one)); }, std::move(event));
  actions_ = nullptr;
}

void Relay::on(event::Connected&&) {
  let_go(Side::downstream, kNotConnected);
  let_go(Side::upstream, kNotConnected);
}

void Relay::on(event::OpenFailed&& event) {
  note_end(event.side);
  finish(std::string(name(event.side)) + " " + event.error, event.time);
  if (event.side == Side::upstream) {
    // A refusal that came late: the nearest to what the wallet would have seen without a proxy.
    actions_->push_back(action::ResetAfterDrain{Side::downstream});
  } else {
    actions_->push_back(action::CloseAfterDrain{Side::downstream});  // there may be a TLS alert to deliver
  }
  actions_->push_back(action::CloseAfterDrain{Side::upstream});
}

void Relay::on(event::Bytes&& event) {
  const auto direction = direction_from(event.from);
  auto& offset = offset_[ztape::index(direction)];
  actions_->push_back(action::Send{opposite(event.from), event.bytes});
  const uint64_t first = std::exchange(offset, offset + event.bytes.size());
  actions_->push_back(action::RecordChunk{direction, first, std::move(event.bytes), event.time});
}

void Relay::on(event::Eof&& event) {
  if (ended_[index(event.from)]) return;
  note_end(event.from);
  hold(event.from, kEnded);
  const auto direction = direction_from(event.from);
  actions_->push_back(action::HalfClose{opposite(event.from), event.truncated});
  actions_->push_back(action::RecordEnd{direction, offset_[ztape::index(direction)], DirectionEnd::fin,
                                        std::string(event.truncated ? kNoCloseNotify : ""), event.time});
  if (!ended_[index(opposite(event.from))]) return;
  finish("", event.time);
  actions_->push_back(action::CloseAfterDrain{Side::downstream});
  actions_->push_back(action::CloseAfterDrain{Side::upstream});
}

void Relay::on(event::Failed&& event) {
  note_end(event.from);
  // After the peer's FIN the kernel names its reset EPIPE (Linux, tcp_reset()).
  const bool reset = event.system_error == "ECONNRESET" || event.system_error == "EPIPE";
  const auto direction = direction_from(event.from);
  actions_->push_back(action::RecordEnd{direction, offset_[ztape::index(direction)],
                                        reset ? DirectionEnd::reset : DirectionEnd::failed,
                                        reset ? "" : event.system_error, event.time});
  finish(std::string(name(event.from)) + ": " + (reset ? "connection reset" : event.system_error), event.time);
  actions_->push_back(action::Drop{event.from});
  actions_->push_back(action::ResetAfterDrain{opposite(event.from)});
}

void Relay::on(event::Queued&& event) {
  if (event.bytes <= kHighWaterBytes) return;
  const Side reader = opposite(event.to);
  if (!(held_[index(reader)] & kQueueFull)) ++pauses_[index(reader)];
  hold(reader, kQueueFull);
}

void Relay::on(event::Drained&& event) {
  let_go(opposite(event.to), kQueueFull);
}

void Relay::on(event::RecorderFull&&) {
  hold(Side::downstream, kRecorderFull);
  hold(Side::upstream, kRecorderFull);
}

void Relay::on(event::RecorderRoom&&) {
  let_go(Side::downstream, kRecorderFull);
  let_go(Side::upstream, kRecorderFull);
}

void Relay::on(event::Stop&& event) {
  finish("", event.time);
  actions_->push_back(action::CloseAfterDrain{Side::downstream});
  actions_->push_back(action::CloseAfterDrain{Side::upstream});
}

void Relay::hold(Side side, HoldReason reason) {
  const auto before = std::exchange(held_[index(side)], held_[index(side)] | reason);
  if (before == 0) actions_->push_back(action::PauseReading{side});
}

void Relay::let_go(Side side, HoldReason reason) {
  auto& held = held_[index(side)];
  if (!(held & reason)) return;
  held = static_cast<uint8_t>(held & ~reason);
  if (held == 0) actions_->push_back(action::StartReading{side});
}

void Relay::note_end(Side side) {
  ended_[index(side)] = true;
  if (!first_side_) first_side_ = side;
}

void Relay::finish(std::string error, MonotonicTime time) {
  finished_ = true;
  actions_->push_back(action::RecordClose{first_side_, std::move(error), time});
}

}  // namespace ztape::proxy
