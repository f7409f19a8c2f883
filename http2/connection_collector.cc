#include "http2/connection_collector.h"

#include <algorithm>
#include <utility>

namespace ztape::http2 {

ConnectionCollector::ConnectionCollector(ConnectionId id, const CallBuilderOptions& options, CaptureWatcher* watcher)
    : options_(options),
      watcher_(watcher),
      builder_(id, options, [this](Call&& call) { on_call(std::move(call)); }),
      fan_out_{&builder_, this},
      reader_(fan_out_) {
  connection_.id = id;
}

void ConnectionCollector::open(const capture::ConnectionOpen& open) {
  connection_.open = open;
  connection_.open_ns = open.time_ns();
}

void ConnectionCollector::chunk(const capture::Chunk& chunk) {
  has_traffic_ = true;
  const auto direction = static_cast<Direction>(chunk.direction());
  last_ns_ = std::max(last_ns_, chunk.time_ns());
  auto& next = next_offset_[index(direction)];
  if (chunk.offset() > next) {
    connection_.missing_bytes += chunk.offset() - next;
    const auto reason = "bytes " + std::to_string(next) + " to " + std::to_string(chunk.offset()) + " are missing";
    if (reader_.readable(direction)) reader_.gap(direction, reason);
    if (http1_) http1_->gap(direction, reason);
  }
  if (options_.not_only_grpc) learn_protocol(chunk);
  next = chunk.offset() + chunk.bytes().size();
  const auto& bytes = chunk.bytes();
  connection_.bytes[index(direction)] += bytes.size();
  if (!bytes.empty() && !watcher_) {
    connection_.reads.push_back({chunk.time_ns(), direction, static_cast<uint32_t>(bytes.size())});
  }
  reader_.read(direction, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, chunk.time_ns());
  if (chunk.end() == capture::NOT_ENDED) return;
  reader_.end(direction);
  if (http1_) http1_->end(direction, chunk.time_ns());
  if (direction == Direction::server_to_client) builder_.server_ended(chunk.time_ns());
  if (first_end_ == capture::SIDE_UNKNOWN) {
    first_end_ = direction == Direction::client_to_server ? capture::DOWNSTREAM : capture::UPSTREAM;
  }
}

// Keeps the first bytes of a direction until they are known to be HTTP/2, and reads HTTP/1 from its first byte on.
void ConnectionCollector::learn_protocol(const capture::Chunk& chunk) {
  const auto direction = static_cast<Direction>(chunk.direction());
  const bool client = direction == Direction::client_to_server;
  const auto& bytes = chunk.bytes();
  auto& first = connection_.first_bytes[index(direction)];
  if (!frames_seen_[index(direction)] && first.size() == chunk.offset() && first.size() < kKeptBeginningBytes) {
    first.append(bytes, 0, kKeptBeginningBytes - first.size());
  }
  if (!bytes.empty() && connection_.wire == Wire::undecided && client) {
    connection_.wire = first.empty() ? Wire::other : wire_of(first);
    if (connection_.wire != Wire::http1) return;
    http1_ = std::make_unique<Http1Calls>(connection_.id, options_, [this](Call&& call) { on_call(std::move(call)); });
    // What was undecided before this chunk are a few bytes of a method.
    const std::string_view before = std::string_view(first).substr(0, chunk.offset());
    http1_->read(direction, {reinterpret_cast<const uint8_t*>(before.data()), before.size()}, chunk.time_ns());
  }
  if (!http1_) return;
  http1_->read(direction, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, chunk.time_ns());
  if (connection_.changed_to.empty()) connection_.changed_to = http1_->changed_to();
  if (connection_.http1_lost.empty()) connection_.http1_lost = http1_->lost();
}

void ConnectionCollector::gap(const capture::Gap& gap) {
  connection_.gap_bytes += gap.bytes();
  const auto direction = static_cast<Direction>(gap.direction());
  next_offset_[index(direction)] = gap.offset() + gap.bytes();
  const auto reason = "a gap of " + std::to_string(gap.bytes()) + " bytes: " + gap.reason();
  reader_.gap(direction, reason);
  if (http1_) http1_->gap(direction, reason);
}

// Of one direction only: that it cannot be read, which the reader finds out by itself.
void ConnectionCollector::state(const capture::ConnectionState& state) {
  if (!state.has_client_to_server() || !state.has_server_to_client()) return;
  const bool begins_here = !std::exchange(has_traffic_, true);
  const capture::ConnectionState::DirectionState* const states[] = {&state.client_to_server(),
                                                                    &state.server_to_client()};
  for (const auto& sample : state.tcp_info()) tcp_info(sample);
  // Where nothing was missed, as at a new file of a run that is read as one, it says nothing new.
  if (!begins_here && reader_.is_in(state)) return;
  for (const auto direction : kDirections) {
    const uint64_t offset = states[index(direction)]->offset();
    auto& next = next_offset_[index(direction)];
    if (begins_here) {
      connection_.earlier_bytes[index(direction)] = offset;
    } else if (offset > next) {
      connection_.missing_bytes += offset - next;
      const auto reason = "bytes " + std::to_string(next) + " to " + std::to_string(offset) + " are missing";
      if (reader_.readable(direction)) reader_.gap(direction, reason);
      if (http1_) http1_->gap(direction, reason);
    }
    next = offset;
    if (states[index(direction)]->end() != capture::NOT_ENDED && first_end_ == capture::SIDE_UNKNOWN) {
      first_end_ = direction == Direction::client_to_server ? capture::DOWNSTREAM : capture::UPSTREAM;
    }
  }
  builder_.restore(state);
  reader_.restore(state);
  if (!begins_here) return;
  connection_.began_earlier = true;
  connection_.client_window_increment = state.client_window_increment();
  headers_seen_ = state.headers_seen();
  for (const auto direction : kDirections) {
    const bool client = direction == Direction::client_to_server;
    const auto& from = *states[index(direction)];
    frames_seen_[index(direction)] = from.frames_begun();
    if (from.settings_size() == 0) continue;
    settings_seen_[index(direction)] = true;
    for (const auto& setting : from.settings()) {
      (client ? connection_.client_settings : connection_.server_settings)
          .push_back({static_cast<uint16_t>(setting.id()), setting.value()});
    }
  }
  // HTTP/1 is read from its first byte on or not at all.
  if (!state.client_to_server().readable()) {
    connection_.wire = Wire::other;
  } else if (state.client_to_server().frames_begun()) {
    connection_.wire = Wire::http2;
  }
}

void ConnectionCollector::tcp_info(const capture::TcpInfo& info) {
  if (info.side() != capture::DOWNSTREAM || info.min_rtt_us() == 0) return;
  const int64_t rtt_ns = int64_t{info.min_rtt_us()} * 1000;
  auto& known = connection_.downstream_rtt_ns;
  if (known == 0 || rtt_ns < known) known = rtt_ns;
}

void ConnectionCollector::close(const capture::ConnectionClose& close) {
  connection_.close = close;
  connection_.close_ns = close.time_ns();
}

void ConnectionCollector::end_calls() {
  const auto side =
      connection_.close.first_side() != capture::SIDE_UNKNOWN ? connection_.close.first_side() : first_end_;
  const auto how = connection_.close_ns < 0      ? EndedBy::still_open
                   : side == capture::UPSTREAM   ? EndedBy::server_close
                   : side == capture::DOWNSTREAM ? EndedBy::client_close
                                                 : EndedBy::still_open;
  const int64_t time_ns = connection_.close_ns < 0 ? last_ns_ : connection_.close_ns;
  builder_.close(how, time_ns);
  if (!http1_) return;
  connection_.http1_lost = http1_->lost();
  http1_->close(how, time_ns);
}

RecordedConnection ConnectionCollector::take() {
  end_calls();
  connection_.last_ns = last_ns_;
  std::ranges::stable_sort(connection_.calls, {}, &Call::stream);
  return std::move(connection_);
}

void ConnectionCollector::on_call(Call&& call) {
  if (watcher_) return watcher_->on_call(connection_, std::move(call));
  connection_.calls.push_back(std::move(call));
}

void ConnectionCollector::on_frame(const Frame& frame) {
  if (!std::exchange(frames_seen_[index(frame.direction)], true)) {
    std::string().swap(connection_.first_bytes[index(frame.direction)]);
  }
  if (!options_.keep_frames) return;
  if (watcher_) return watcher_->on_frame(connection_, frame);
  connection_.frames.push_back(frame);
}

void ConnectionCollector::on_headers(const Frame& /*frame*/, const HeaderList& /*fields*/, bool /*end_stream*/,
                                     bool /*readable*/) {
  headers_seen_ = true;
}

void ConnectionCollector::on_settings(const Frame& frame, std::span<const Setting> settings) {
  const bool client = frame.direction == Direction::client_to_server;
  if (settings_seen_[index(frame.direction)]) return;
  settings_seen_[index(frame.direction)] = true;
  auto& kept = client ? connection_.client_settings : connection_.server_settings;
  kept.assign(settings.begin(), settings.end());
}

void ConnectionCollector::on_window_update(const Frame& frame, uint32_t increment) {
  if (frame.stream == 0 && frame.direction == Direction::client_to_server && !headers_seen_) {
    connection_.client_window_increment += increment;
  }
}

void ConnectionCollector::on_unreadable(const Unreadable& lost) {
  connection_.unreadable.push_back(lost);
}

}  // namespace ztape::http2
