#include "proxy/record_writer.h"

#include <algorithm>
#include <utility>

#include "net/loop.h"
#include "proto/capture.pb.h"

namespace ztape::proxy {
namespace {

// zstd's level by what waits: compact blocks hardly compress, so that a busy recorder leaves them as they are.
constexpr std::size_t kCalmQueueBytes = 256 * 1024;
constexpr std::size_t kBusyQueueBytes = 768 * 1024;
constexpr int kCalmLevel = 1;
constexpr int kBusyLevel = -7;
constexpr int kStrainedLevel = kStoredLevel;

constexpr Loss kOneRecord{.chunks = 0, .bytes = 0, .records = 1, .gaps = 0};

Direction from_proto(capture::Direction direction) {
  return direction == capture::SERVER_TO_CLIENT ? Direction::server_to_client : Direction::client_to_server;
}

void add(Loss& loss, const Loss& more) {
  loss.chunks += more.chunks;
  loss.bytes += more.bytes;
  loss.records += more.records;
  loss.gaps += more.gaps;
}

}  // namespace

Result<std::unique_ptr<RecordWriter>> RecordWriter::start(CaptureRunOptions run_options, RecordWriterOptions options) {
  if (options.compression.automatic) options.compression.level = kCalmLevel;
  run_options.sync = options.sync;
  run_options.compression_level = options.compression.level;
  if (!options.monotonic_clock) options.monotonic_clock = net::monotonic_now;
  if (!options.wall_clock) options.wall_clock = net::wall_now;
  auto run = CaptureRun::begin(std::move(run_options));
  if (!run) return std::unexpected(std::move(run.error()));
  auto file = (*run)->create_next();
  if (!file) return std::unexpected(std::move(file.error()));
  return std::unique_ptr<RecordWriter>(new RecordWriter(std::move(*run), std::move(*file), std::move(options)));
}

RecordWriter::RecordWriter(std::unique_ptr<CaptureRun> run, std::unique_ptr<CaptureWriter> file,
                           RecordWriterOptions options)
    : run_(std::move(run)),
      file_(std::move(file)),
      options_(std::move(options)),
      level_(options_.compression.level),
      last_anchor_(options_.opened),
      anchor_offset_ns_(clock_offset_ns()) {
  report_.files = 1;
  keep_room_for_the_end();
  if (!options_.sync) return;
  sync_ = std::make_unique<DiskSync>(options_.on_problem);
  sync_->watch(file_->descriptor(), run_->path());
  sync_->written();
}

RecordWriter::~RecordWriter() = default;

TrackedConnection* RecordWriter::find(ConnectionId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

void RecordWriter::write(const QueuedRecord& record, MonotonicTime now) {
  now_ = now;
  if (file_->flushed()) oldest_ = now;
  if (record.record) {
    write_other(*record.record);
  } else {
    auto* const connection = find(record.connection);
    write_chunk(connection, {.connection = record.connection,
                             .direction = record.direction,
                             .offset = record.offset,
                             .time_ns = record.time_ns,
                             .bytes = record.bytes.span(),
                             .end = capture::NOT_ENDED,
                             .error = {}});
    if (connection) connection->tap->read(record.direction, record.bytes.span(), record.time_ns);
  }
  if (rotation_is_due(now)) rotate(now);
}

void RecordWriter::write_chunk(TrackedConnection* connection, const ChunkView& chunk) {
  const Loss what{.chunks = 1, .bytes = chunk.bytes.size(), .records = 0, .gaps = 0};
  const bool missed = outage_.has_value();
  const auto where = put([&] { return file_->append_chunk(chunk); }, what);
  if (!connection) return;
  auto& part = connection->part(chunk.direction);
  part.next = chunk.offset + chunk.bytes.size();
  if (chunk.end != capture::NOT_ENDED) part.end = chunk.end;
  if (missed) part.missed.add(chunk.offset, chunk.bytes.size(), 1, chunk.time_ns, chunk.time_ns);
  if (where != Put::in_block) return;
  part.in_block.add(chunk.offset, chunk.bytes.size(), 1, chunk.time_ns, chunk.time_ns);
  note_in_block(*connection);
}

void RecordWriter::write_other(const capture::Record& record) {
  if (record.has_chunk()) {  // an end: it may have an error's name, which a queued chunk has no room for
    const auto& chunk = record.chunk();
    auto* const connection = find(chunk.connection());
    write_chunk(connection, {.connection = chunk.connection(),
                             .direction = from_proto(chunk.direction()),
                             .offset = chunk.offset(),
                             .time_ns = chunk.time_ns(),
                             .bytes = {},
                             .end = chunk.end(),
                             .error = chunk.error()});
    if (connection) connection->tap->end(from_proto(chunk.direction()), chunk.time_ns());
    return;
  }
  if (record.has_connection_open()) return write_open(record);
  if (record.has_connection_close()) return write_close(record.connection_close());
  if (record.has_gap()) return write_gap(record);
  append(record);
  if (record.has_tcp_info()) {
    const auto& sample = record.tcp_info();
    const bool upstream = sample.side() == capture::UPSTREAM;
    if (auto* const connection = find(sample.connection())) connection->tcp_info[upstream ? 1 : 0] = sample;
  }
}

void RecordWriter::write_open(const capture::Record& record) {
  const auto id = record.connection_open().connection();
  authorities_.opened(record.connection_open());
  auto& connection = connections_[id];
  connection = std::make_unique<TrackedConnection>();
  connection->id = id;
  connection->open = record;
  connection->tap = std::make_unique<Tap>(
      id, [this](const EncodedRecord& index) { put([&] { return file_->append_encoded(index); }, kOneRecord); }, calls_,
      authorities_);
  connection->open_missed = outage_.has_value();
  if (connection->open_missed) return;
  if (put_record(record) != Put::in_block) return;
  connection->open_in_block = true;
  note_in_block(*connection);
}

void RecordWriter::write_close(const capture::ConnectionClose& close) {
  authorities_.closed(close.connection());
  const auto found = connections_.find(close.connection());
  if (found == connections_.end()) {
    put_close(close);
    return;
  }
  found->second->tap->close(close.time_ns());
  auto connection = std::move(found->second);
  connections_.erase(found);
  if (outage_) {
    connection->tap.reset();
    connection->close = close;
    return keep_closed(std::move(connection));
  }
  const auto where = put_close(close);
  connection->tap.reset();
  if (where != Put::in_block) return;  // nothing of it is in the open block, which is written or given up
  note_in_block(*connection);
  closed_in_block_.push_back(std::move(connection));
}

// Of the queue: it was full.
void RecordWriter::write_gap(const capture::Record& record) {
  const auto& gap = record.gap();
  const Loss lost{.chunks = gap.records(), .bytes = gap.bytes(), .records = 0, .gaps = 1};
  const bool missed = outage_.has_value();
  const auto where = missed ? Put::refused : put_record(record);
  add(loss_, lost);
  add(loss_of_gaps_, lost);
  if (missed) --loss_.gaps;  // it becomes a part of a larger one
  auto* const connection = find(gap.connection());
  if (!connection) return;
  const auto direction = from_proto(gap.direction());
  auto& part = connection->part(direction);
  part.next = gap.offset() + gap.bytes();
  if (missed) part.missed.add(gap.offset(), gap.bytes(), gap.records(), gap.first_ns(), gap.last_ns());
  if (where == Put::in_block) {
    part.in_block.add(gap.offset(), gap.bytes(), gap.records(), gap.first_ns(), gap.last_ns());
    note_in_block(*connection);
  }
  connection->tap->gap(direction, gap.reason());
}

void RecordWriter::append(const capture::Record& record) {
  put_record(record);
}

RecordWriter::Put RecordWriter::put_record(const capture::Record& record) {
  return put([&] { return file_->append(record); }, kOneRecord);
}

RecordWriter::Put RecordWriter::put_close(const capture::ConnectionClose& close) {
  return put([&] { return file_->append_close(close); }, kOneRecord);
}

template <typename Append>
RecordWriter::Put RecordWriter::put(Append&& append, const Loss& what) {
  if (error_ || outage_) {
    add(loss_, what);
    return Put::refused;
  }
  const uint64_t blocks = file_->blocks_written();
  const Result<void> done = append();
  if (done) {
    if (file_->blocks_written() != blocks) {
      block_written();
      return Put::in_file;
    }
    add(in_open_block_, what);
    return Put::in_block;
  }
  switch (done.error().code) {
    case ErrorCode::over_limit: add(loss_, what); return Put::refused;
    case ErrorCode::no_room:  // it is the last of a block that waits for room
      add(in_open_block_, what);
      begin_outage(done.error());
      return Put::in_block;
    default:
      add(loss_, what);
      give_up(done.error());
      return Put::refused;
  }
}

void RecordWriter::note_in_block(TrackedConnection& connection) {
  if (!std::exchange(connection.in_list, true)) in_block_.push_back(&connection);
}

void RecordWriter::block_written() {
  unflushed_.push_back(std::exchange(in_open_block_, {}));
  while (unflushed_.size() > file_->blocks_pending()) unflushed_.pop_front();
  for (auto* const connection : in_block_) connection->block_written();
  in_block_.clear();
  closed_in_block_.clear();
  keep_room_for_the_end();
  if (sync_) sync_->written();
}

void RecordWriter::give_up(const Error& error) {
  if (error_) return;
  error_ = error;
  add(loss_, std::exchange(in_open_block_, {}));
  const std::size_t missing = std::min(unflushed_.size(), file_->blocks_pending());
  std::for_each(unflushed_.end() - static_cast<std::ptrdiff_t>(missing), unflushed_.end(),
                [this](const Loss& block) { add(loss_, block); });
  unflushed_.clear();
  in_block_.clear();
  closed_in_block_.clear();
  outage_.reset();
  options_.on_problem(error.line() + "; the traffic goes on without being recorded");
}

void RecordWriter::flush_if_due(MonotonicTime now) {
  now_ = now;
  if (error_) return;
  if (outage_) return look_for_room(now);
  if (sync_) write_marks();
  if (file_->flushed() || now - oldest_ < kBlockAgeNs) return;
  if (anchor_is_due()) append_anchor();
  flush();
  if (rotation_is_due(now)) rotate(now);
}

// False: what is in the block is not in the file.
bool RecordWriter::flush() {
  if (error_ || outage_) return false;
  if (const auto done = file_->flush(); !done) {
    done.error().code == ErrorCode::no_room ? begin_outage(done.error()) : give_up(done.error());
    return false;
  }
  block_written();
  return true;
}

void RecordWriter::choose_level(std::size_t queued_bytes) {
  if (!options_.compression.automatic) return;
  level_ = queued_bytes < kCalmQueueBytes ? kCalmLevel : queued_bytes < kBusyQueueBytes ? kBusyLevel : kStrainedLevel;
  file_->set_compression_level(level_);
}

RecorderSnapshot RecordWriter::snapshot(MonotonicTime now) {
  for (auto& [id, connection] : connections_) connection->tap->settle(now - options_.opened);
  return {.calls = calls_.total(),
          .methods = calls_.methods(),
          .outcomes = calls_.rows(),
          .loss = loss_,
          .loss_of_gaps = loss_of_gaps_,
          .file = path(),
          .files = report_.files,
          .file_bytes = bytes_written(),
          .compression_level = level_,
          .error = error_    ? error_->line()
                   : outage_ ? outage_->error.line()
                             : ""};
}

bool RecordWriter::idle() const {
  return error_ || (!outage_ && file_->flushed());
}

}  // namespace ztape::proxy
