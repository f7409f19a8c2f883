#include "proxy/record_writer.h"

#include <utility>

#include "net/loop.h"
#include "proto/capture.pb.h"

namespace ztape::proxy {
namespace {

constexpr int64_t kAnchorEveryNs = 60'000'000'000;

// zstd's level by what waits: compact blocks hardly compress, so that a busy recorder leaves them as they are.
constexpr std::size_t kCalmQueueBytes = 256 * 1024;
constexpr std::size_t kBusyQueueBytes = 768 * 1024;
constexpr int kCalmLevel = 1;
constexpr int kBusyLevel = -7;
constexpr int kStrainedLevel = -20;

Direction from_proto(capture::Direction direction) {
  return direction == capture::SERVER_TO_CLIENT ? Direction::server_to_client : Direction::client_to_server;
}

}  // namespace

RecordWriter::RecordWriter(std::unique_ptr<CaptureWriter> file, MonotonicTime opened, Compression compression,
                           OnProblem on_problem)
    : file_(std::move(file)),
      opened_(opened),
      compression_(compression),
      level_(compression.automatic ? kCalmLevel : compression.level),
      on_problem_(std::move(on_problem)),
      last_anchor_(opened) {}

RecordWriter::~RecordWriter() = default;

void RecordWriter::write(const QueuedRecord& record, MonotonicTime now) {
  if (file_->block_bytes_pending() == 0) block_started_ = now;
  if (record.record) return write_other(*record.record);
  write_chunk({.connection = record.connection,
               .direction = record.direction,
               .offset = record.offset,
               .time_ns = record.time_ns,
               .bytes = record.bytes.span(),
               .end = capture::NOT_ENDED,
               .error = {}});
  if (const auto tap = taps_.find(record.connection); tap != taps_.end()) {
    tap->second->read(record.direction, record.bytes.span(), record.time_ns);
  }
}

void RecordWriter::write_chunk(const ChunkView& chunk) {
  const std::size_t pending_before = file_->block_bytes_pending();
  note(error_ ? std::unexpected(*error_) : file_->append_chunk(chunk), pending_before, chunk.bytes.size(), true);
}

void RecordWriter::write_other(const capture::Record& record) {
  if (record.has_chunk()) {  // an end: it may have an error's name, which a queued chunk has no room for
    const auto& chunk = record.chunk();
    write_chunk({.connection = chunk.connection(),
                 .direction = from_proto(chunk.direction()),
                 .offset = chunk.offset(),
                 .time_ns = chunk.time_ns(),
                 .bytes = {},
                 .end = chunk.end(),
                 .error = chunk.error()});
    if (const auto tap = taps_.find(chunk.connection()); tap != taps_.end()) {
      tap->second->end(from_proto(chunk.direction()), chunk.time_ns());
    }
    return;
  }
  if (record.has_connection_open()) {
    append(record);
    const auto id = record.connection_open().connection();
    authorities_.opened(record.connection_open());
    const auto on_index = [this](const capture::Record& index) {
      append(index);
      if (index.has_headers()) authorities_.read(index.headers());
    };
    taps_[id] = std::make_unique<Tap>(id, on_index, calls_);
    return;
  }
  if (record.has_connection_close()) {
    const auto& close = record.connection_close();
    authorities_.closed(close.connection());
    if (const auto tap = taps_.find(close.connection()); tap != taps_.end()) {
      tap->second->close(close.time_ns());
      taps_.erase(tap);
    }
    const std::size_t pending_before = file_->block_bytes_pending();
    note(error_ ? std::unexpected(*error_) : file_->append_close(close), pending_before, 0, false);
    return;
  }
  append(record);
  if (record.has_gap()) {
    const auto& gap = record.gap();
    ++loss_.gaps;
    loss_.chunks += gap.records();
    loss_.bytes += gap.bytes();
    ++loss_of_gaps_.gaps;
    loss_of_gaps_.chunks += gap.records();
    loss_of_gaps_.bytes += gap.bytes();
    const auto tap = taps_.find(gap.connection());
    if (tap != taps_.end()) tap->second->gap(from_proto(gap.direction()), gap.reason());
  }
}

void RecordWriter::append(const capture::Record& record) {
  const std::size_t pending_before = file_->block_bytes_pending();
  note(error_ ? std::unexpected(*error_) : file_->append(record), pending_before, 0, false);
}

// Keeps the account of what is lost: at once where the file takes no more, and of the open block when that is noticed.
void RecordWriter::note(const Result<void>& result, std::size_t pending_before, uint64_t chunk_bytes, bool is_chunk) {
  const auto count = [&](Loss& loss) {
    loss.bytes += chunk_bytes;
    ++(is_chunk ? loss.chunks : loss.records);
  };
  if (result) {
    if (file_->block_bytes_pending() <= pending_before) in_open_block_ = {};  // a block was written on the way
    if (file_->block_bytes_pending() > 0) count(in_open_block_);
    return;
  }
  count(loss_);
  if (error_ || result.error().code == ErrorCode::over_limit) return;
  give_up(result.error());
}

void RecordWriter::give_up(const Error& error) {
  if (error_) return;
  error_ = error;
  loss_.chunks += in_open_block_.chunks;
  loss_.bytes += in_open_block_.bytes;
  loss_.records += in_open_block_.records;
  on_problem_(error.line() + "; the traffic goes on without being recorded");
}

void RecordWriter::flush_if_due(MonotonicTime now) {
  if (error_ || file_->block_bytes_pending() == 0 || now - block_started_ < kBlockAgeNs) return;
  if (now - last_anchor_ >= kAnchorEveryNs) append_anchor(now);
  if (const auto done = file_->flush(); !done) return give_up(done.error());
  in_open_block_ = {};
}

void RecordWriter::append_anchor(MonotonicTime now) {
  last_anchor_ = now;
  capture::Record record;
  auto& anchor = *record.mutable_clock_anchor();
  const auto monotonic = net::monotonic_now();
  anchor.set_monotonic_ns(monotonic.ns);
  anchor.set_realtime_unix_ns(net::wall_now().unix_ns);
  anchor.set_time_ns(monotonic - opened_);
  append(record);
}

void RecordWriter::choose_level(std::size_t queued_bytes) {
  if (!compression_.automatic) return;
  level_ = queued_bytes < kCalmQueueBytes ? kCalmLevel : queued_bytes < kBusyQueueBytes ? kBusyLevel : kStrainedLevel;
  file_->set_compression_level(level_);
}

RecorderSnapshot RecordWriter::snapshot(MonotonicTime now) {
  for (auto& [id, tap] : taps_) tap->settle(now - opened_);
  return {.calls = calls_.total(),
          .methods = calls_.methods(),
          .outcomes = calls_.rows(),
          .loss = loss_,
          .loss_of_gaps = loss_of_gaps_,
          .file_bytes = bytes_written(),
          .compression_level = level_,
          .error = error_ ? error_->line() : ""};
}

bool RecordWriter::idle() const {
  return error_ || file_->block_bytes_pending() == 0;
}

void RecordWriter::finish(MonotonicTime now) {
  if (error_) return;
  append_anchor(now);
  if (const auto done = file_->finish(); !done && !error_) give_up(done.error());
}

}  // namespace ztape::proxy
