#include "http2/recorded_connection.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "http2/connection_collector.h"

namespace ztape::http2 {
namespace {

void add(RecordedLag& lag, const capture::LoopLag& record) {
  const int buckets = std::min(record.bucket_top_ns_size(), record.bucket_turns_size());
  for (int i = 0; i < buckets; ++i) lag.turns.add(record.bucket_top_ns(i), record.bucket_turns(i));
  lag.max_ns = std::max({lag.max_ns, record.max_ns(), record.timer_late_ns()});
}

}  // namespace

CaptureCollector::CaptureCollector(const CallBuilderOptions& options, CaptureWatcher* watcher)
    : options_(options), watcher_(watcher) {}

CaptureCollector::~CaptureCollector() = default;

ConnectionCollector& CaptureCollector::connection(ConnectionId id) {
  auto& collector = connections_[id];
  if (!collector) collector = std::make_unique<ConnectionCollector>(id, options_, watcher_);
  return *collector;
}

void CaptureCollector::take(const capture::Record& record) {
  switch (record.kind_case()) {
    case capture::Record::kCaptureStart: recorded_.start = record.capture_start(); break;
    case capture::Record::kConnectionOpen:
      connection(record.connection_open().connection()).open(record.connection_open());
      break;
    case capture::Record::kChunk:
      last_ns_ = std::max(last_ns_, record.chunk().time_ns());
      connection(record.chunk().connection()).chunk(record.chunk());
      break;
    case capture::Record::kTcpInfo: connection(record.tcp_info().connection()).tcp_info(record.tcp_info()); break;
    case capture::Record::kConnectionClose: {
      const auto id = record.connection_close().connection();
      connection(id).close(record.connection_close());
      if (!watcher_) break;
      connection(id).end_calls();  // nobody asks for the connection again
      connections_.erase(id);
      break;
    }
    case capture::Record::kGap:
      if (!watcher_) recorded_.gaps.push_back(record.gap());
      if (record.gap().connection() != 0) connection(record.gap().connection()).gap(record.gap());
      break;
    case capture::Record::kConnectionState:
      connection(record.connection_state().connection()).state(record.connection_state());
      break;
    case capture::Record::kLoopLag: add(recorded_.loop_lag, record.loop_lag()); break;
    default: break;  // the index over the chunks, and what has no part in calls
  }
}

void CaptureCollector::settle(int64_t time_ns) {
  for (auto& [id, collector] : connections_) collector->settle(time_ns);
}

RecordedCapture CaptureCollector::finish() {
  for (auto& [id, collector] : connections_) recorded_.connections.push_back(collector->take());
  connections_.clear();
  return std::move(recorded_);
}

RecordedCapture read_capture(CaptureReader& reader, const CallBuilderOptions& options) {
  CaptureCollector collector(options);
  while (const auto* record = reader.next()) collector.take(*record);
  auto recorded = collector.finish();
  recorded.file = reader.name();
  recorded.damage = reader.damage();
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
