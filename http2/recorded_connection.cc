#include "http2/recorded_connection.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>

#include "http2/connection_reader.h"
#include "http2/fan_out.h"

namespace ztape::http2 {
namespace {

// Collects one connection while its records pass.
class Collector final : public ReaderSink {
 public:
  Collector(ConnectionId id, const CallBuilderOptions& options)
      : builder_(id, options, [this](Call&& call) { connection.calls.push_back(std::move(call)); }),
        fan_out_{&builder_, this},
        reader_(fan_out_),
        keep_frames_(options.keep_frames) {
    connection.id = id;
  }

  void chunk(const capture::Chunk& chunk) {
    const auto direction = static_cast<Direction>(chunk.direction());
    last_ns_ = std::max(last_ns_, chunk.time_ns());
    auto& next = next_offset_[index(direction)];
    if (chunk.offset() > next) {
      connection.missing_bytes += chunk.offset() - next;
      if (reader_.readable(direction)) {
        reader_.gap(direction,
                    "bytes " + std::to_string(next) + " to " + std::to_string(chunk.offset()) + " are missing");
      }
    }
    next = chunk.offset() + chunk.bytes().size();
    const auto& bytes = chunk.bytes();
    connection.bytes[index(direction)] += bytes.size();
    if (!bytes.empty()) connection.reads.push_back({chunk.time_ns(), direction, static_cast<uint32_t>(bytes.size())});
    reader_.read(direction, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, chunk.time_ns());
    if (chunk.end() != capture::NOT_ENDED && direction == Direction::server_to_client) {
      builder_.server_ended(chunk.time_ns());
    }
    if (chunk.end() != capture::NOT_ENDED && first_end_ == capture::SIDE_UNKNOWN) {
      first_end_ = direction == Direction::client_to_server ? capture::DOWNSTREAM : capture::UPSTREAM;
    }
  }

  void gap(const capture::Gap& gap) {
    connection.gap_bytes += gap.bytes();
    next_offset_[gap.direction() == capture::SERVER_TO_CLIENT ? 1 : 0] = gap.offset() + gap.bytes();
    reader_.gap(static_cast<Direction>(gap.direction()),
                "a gap of " + std::to_string(gap.bytes()) + " bytes: " + gap.reason());
  }

  void tcp_info(const capture::TcpInfo& info) {
    if (info.side() != capture::DOWNSTREAM || info.min_rtt_us() == 0) return;
    const int64_t rtt_ns = int64_t{info.min_rtt_us()} * 1000;
    auto& known = connection.downstream_rtt_ns;
    if (known == 0 || rtt_ns < known) known = rtt_ns;
  }

  void close(const capture::ConnectionClose& close) {
    connection.close = close;
    connection.close_ns = close.time_ns();
  }

  // The calls by start, and those that the connection's end ended.
  RecordedConnection take() {
    const auto side =
        connection.close.first_side() != capture::SIDE_UNKNOWN ? connection.close.first_side() : first_end_;
    const auto how = connection.close_ns < 0       ? EndedBy::still_open
                     : side == capture::UPSTREAM   ? EndedBy::server_close
                     : side == capture::DOWNSTREAM ? EndedBy::client_close
                                                   : EndedBy::still_open;
    builder_.close(how, connection.close_ns < 0 ? last_ns_ : connection.close_ns);
    std::ranges::stable_sort(connection.calls, {}, &Call::stream);
    return std::move(connection);
  }

  RecordedConnection connection;

 private:
  void on_frame(const Frame& frame) override {
    if (keep_frames_) connection.frames.push_back(frame);
  }
  void on_headers(const Frame& /*frame*/, const HeaderList& /*fields*/, bool /*end_stream*/,
                  bool /*readable*/) override {
    headers_seen_ = true;
  }
  void on_settings(const Frame& frame, std::span<const Setting> settings) override {
    const bool client = frame.direction == Direction::client_to_server;
    if (settings_seen_[index(frame.direction)]) return;
    settings_seen_[index(frame.direction)] = true;
    auto& kept = client ? connection.client_settings : connection.server_settings;
    kept.assign(settings.begin(), settings.end());
  }
  void on_window_update(const Frame& frame, uint32_t increment) override {
    if (frame.stream == 0 && frame.direction == Direction::client_to_server && !headers_seen_) {
      connection.client_window_increment += increment;
    }
  }
  void on_unreadable(const Unreadable& lost) override { connection.unreadable.push_back(lost); }

  CallBuilder builder_;
  FanOut fan_out_;
  ConnectionReader reader_;
  uint64_t next_offset_[2] = {0, 0};  // by direction
  bool keep_frames_;
  bool headers_seen_ = false;
  bool settings_seen_[2] = {false, false};
  capture::Side first_end_ = capture::SIDE_UNKNOWN;
  int64_t last_ns_ = 0;
};

}  // namespace

RecordedCapture read_capture(CaptureReader& reader, const CallBuilderOptions& options) {
  RecordedCapture recorded;
  recorded.file = reader.name();
  std::map<ConnectionId, std::unique_ptr<Collector>> collectors;
  const auto collector_of = [&](ConnectionId id) -> Collector& {
    auto& collector = collectors[id];
    if (!collector) collector = std::make_unique<Collector>(id, options);
    return *collector;
  };
  while (const auto* record = reader.next()) {
    switch (record->kind_case()) {
      case capture::Record::kCaptureStart: recorded.start = record->capture_start(); break;
      case capture::Record::kConnectionOpen: {
        auto& connection = collector_of(record->connection_open().connection()).connection;
        connection.open = record->connection_open();
        connection.open_ns = connection.open.time_ns();
        break;
      }
      case capture::Record::kChunk: collector_of(record->chunk().connection()).chunk(record->chunk()); break;
      case capture::Record::kTcpInfo: collector_of(record->tcp_info().connection()).tcp_info(record->tcp_info()); break;
      case capture::Record::kConnectionClose:
        collector_of(record->connection_close().connection()).close(record->connection_close());
        break;
      case capture::Record::kGap:
        recorded.gaps.push_back(record->gap());
        if (record->gap().connection() != 0) collector_of(record->gap().connection()).gap(record->gap());
        break;
      default: break;  // the index over the chunks, and what has no part in calls
    }
  }
  recorded.damage = reader.damage();
  for (auto& [id, collector] : collectors) recorded.connections.push_back(collector->take());
  return recorded;
}

Result<RecordedCapture> read_capture(const std::string& file, const CallBuilderOptions& options) {
  auto reader = CaptureReader::open(file);
  if (!reader) return std::unexpected(reader.error());
  return read_capture(**reader, options);
}

std::string absolute_time(const capture::CaptureStart& start, int64_t time_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t unix_ns = start.opened().realtime_unix_ns() + (time_ns - start.opened().time_ns());
  int64_t seconds = unix_ns / kSecond;
  int64_t nanoseconds = unix_ns % kSecond;
  if (nanoseconds < 0) {
    nanoseconds += kSecond;
    --seconds;
  }
  const std::time_t time = seconds;
  std::tm utc{};
  gmtime_r(&time, &utc);
  char date[40];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
  char text[64];
  std::snprintf(text, sizeof text, "%s.%09lldZ", date, static_cast<long long>(nanoseconds));
  return text;
}

}  // namespace ztape::http2
