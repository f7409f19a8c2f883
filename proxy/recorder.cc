#include "proxy/recorder.h"

#include <atomic>
#include <csignal>
#include <exception>
#include <thread>
#include <utility>

#include "net/loop.h"
#include "proto/capture.pb.h"
#include "proxy/record_queue.h"
#include "proxy/snapshot_board.h"

namespace ztape::proxy {
namespace {

// What was left out of one direction since the last record of it that fitted.
struct OpenGap {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t records = 0;
  MonotonicTime first;
  MonotonicTime last;
};

}  // namespace

struct Recorder::Impl {
  RecorderOptions options;
  MonotonicTime opened;
  RecordQueue queue;
  std::unique_ptr<RecordWriter> writer;  // of the thread, until it has ended
  std::thread thread;
  std::map<std::pair<ConnectionId, Direction>, OpenGap> gaps;
  bool overflowing = false;  // until the queue is half empty, so that a gap is one and not many
  MonotonicTime no_wait_before;
  std::atomic<bool> room_wanted{false};
  std::function<void()> on_room;
  Loss dropped;  // what was left out for want of room
  SnapshotBoard board;
  uint64_t told_file_bytes = 0;  // of the thread
  RecordingReport report;
  std::string first_path;
  bool finished = false;

  explicit Impl(RecorderOptions with) : options(std::move(with)), queue(options.queue_bytes) {}

  [[nodiscard]] bool has_room() const { return queue.bytes_in_use() < queue.limit_bytes() / 2; }

  void run() {
    std::vector<QueuedRecord> batch;
    while (queue.take(batch, writer->idle() && !board.changed())) {
      if (!batch.empty() && options.tell_status) board.note_change();
      writer->choose_level(queue.bytes_in_use());
      for (auto& record : batch) {
        guard([&] { writer->write(record, net::monotonic_now()); });
        const std::size_t cost = record.cost_bytes();
        record = QueuedRecord();  // lets the bytes go before the room is announced
        queue.release(cost);
        if (room_wanted.load() && has_room() && room_wanted.exchange(false)) on_room();
      }
      batch.clear();
      guard([&] { writer->flush_if_due(net::monotonic_now()); });
      if (options.tell_status) tell_status(net::monotonic_now());
    }
    guard([&] { writer->finish(net::monotonic_now()); });
  }

  // Out of memory, or a fault of ours: the recording suffers, the traffic must not.
  template <typename Work>
  void guard(Work&& work) {
    try {
      work();
    } catch (const std::exception& error) {
      writer->give_up({ErrorCode::io, std::string("recording failed: ") + error.what(), writer->path()});
    }
  }

  void tell_status(MonotonicTime now) {
    if (writer->bytes_written() != told_file_bytes) board.note_change();
    if (!board.due(now)) return;
    told_file_bytes = writer->bytes_written();
    try {
      board.post(writer->snapshot(now), now);
    } catch (const std::exception&) {  // out of memory: the old one stays
    }
  }

  void close_gap(ConnectionId connection, Direction direction) {
    const auto found = gaps.find({connection, direction});
    if (found == gaps.end()) return;
    const OpenGap open = found->second;
    gaps.erase(found);
    capture::Record record;
    auto& gap = *record.mutable_gap();
    gap.set_connection(connection);
    gap.set_direction(direction == Direction::client_to_server ? capture::CLIENT_TO_SERVER : capture::SERVER_TO_CLIENT);
    gap.set_offset(open.offset);
    gap.set_bytes(open.bytes);
    gap.set_records(open.records);
    gap.set_first_ns(open.first - opened);
    gap.set_last_ns(open.last - opened);
    gap.set_reason("the disk was too slow and the queue was full");
    queue.push(QueuedRecord(std::move(record)));
  }
};

Recorder::Recorder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Recorder::~Recorder() {
  finish();
}

Result<std::unique_ptr<Recorder>> Recorder::start(RecorderOptions options) {
  // A file at its size limit is a full disk to us: an error of write(2), not the end of the proxy.
  std::signal(SIGXFSZ, SIG_IGN);
  capture::CaptureStart start;
  start.set_tool_version(options.tool_version);
  start.set_source("proxy");
  for (const auto& [name, value] : options.settings) (*start.mutable_settings())[name] = value;
  for (const auto& [name, value] : options.notes) (*start.mutable_notes())[name] = value;
  const auto opened = net::monotonic_now();
  start.mutable_opened()->set_monotonic_ns(opened.ns);
  start.mutable_opened()->set_realtime_unix_ns(net::wall_now().unix_ns);
  start.mutable_opened()->set_time_ns(0);
  CaptureRunOptions run;
  run.path = options.path;
  run.overwrite = options.overwrite;
  run.rotate_bytes = options.rotate_bytes;
  run.keep = options.keep;
  run.start = std::move(start);
  RecordWriterOptions writing;
  writing.opened = opened;
  writing.compression = options.compression;
  writing.sync = options.sync;
  writing.on_problem = options.on_problem;
  writing.on_new_file = options.on_new_file;
  auto writer = RecordWriter::start(std::move(run), std::move(writing));
  if (!writer) return std::unexpected(std::move(writer.error()));

  auto impl = std::make_unique<Impl>(std::move(options));
  impl->opened = opened;
  impl->writer = std::move(*writer);
  impl->first_path = impl->writer->path();
  impl->writer->watch_authorities(impl->options.on_notice);
  if (impl->options.tell_status) impl->board.post(impl->writer->snapshot(opened), opened);
  impl->thread = std::thread([raw = impl.get()] { raw->run(); });
  return std::unique_ptr<Recorder>(new Recorder(std::move(impl)));
}

void Recorder::chunk(ConnectionId connection, Direction direction, uint64_t offset, net::Slice bytes,
                     MonotonicTime time) {
  auto& self = *impl_;
  if (!self.options.hold_when_full) {
    if (self.overflowing && self.has_room()) self.overflowing = false;
    if (!self.queue.fits(bytes.size())) self.overflowing = true;
    if (self.overflowing) {
      auto [gap, is_new] =
          self.gaps.try_emplace({connection, direction}, OpenGap{.offset = offset, .first = time, .last = time});
      gap->second.bytes += bytes.size();
      ++gap->second.records;
      ++self.dropped.chunks;
      self.dropped.bytes += bytes.size();
      gap->second.last = time;
      return;
    }
    if (!self.gaps.empty()) self.close_gap(connection, direction);
  }
  QueuedRecord queued;
  queued.connection = connection;
  queued.direction = direction;
  queued.offset = offset;
  queued.time_ns = time - self.opened;
  queued.bytes = std::move(bytes);
  self.queue.push(std::move(queued));
}

void Recorder::record(capture::Record&& record) {
  auto& self = *impl_;
  if (!self.gaps.empty()) {
    // A gap stands before whatever follows it in its direction.
    if (record.has_chunk()) {
      const auto& chunk = record.chunk();
      self.close_gap(chunk.connection(), chunk.direction() == capture::SERVER_TO_CLIENT ? Direction::server_to_client
                                                                                        : Direction::client_to_server);
    }
    if (record.has_connection_close()) {
      for (const auto direction : kDirections) self.close_gap(record.connection_close().connection(), direction);
    }
  }
  self.queue.push(QueuedRecord(std::move(record)));
}

bool Recorder::full() {
  auto& self = *impl_;
  // Before it is full, where it would then overflow: what is being read when the readers stop must find room.
  const auto limit = self.options.hold_when_full ? self.queue.limit_bytes() : self.queue.limit_bytes() / 4 * 3;
  if (self.queue.bytes_in_use() <= limit) return false;
  if (!self.options.hold_when_full && (self.overflowing || net::monotonic_now() < self.no_wait_before)) return false;
  self.room_wanted = true;
  // The thread may have made the room just before it could see the wish.
  return !(self.has_room() && self.room_wanted.exchange(false));
}

void Recorder::give_way(MonotonicTime until) {
  impl_->no_wait_before = until;
}

bool Recorder::waits_without_end() const {
  return impl_->options.hold_when_full;
}

void Recorder::set_on_room(std::function<void()> on_room) {
  impl_->on_room = std::move(on_room);
}

RecorderStatus Recorder::status() const {
  const auto& self = *impl_;
  auto snapshot = self.board.latest();
  Loss loss = snapshot->loss;
  // Gaps are counted where they arise: the thread comes to them later.
  loss.chunks += self.dropped.chunks - snapshot->loss_of_gaps.chunks;
  loss.bytes += self.dropped.bytes - snapshot->loss_of_gaps.bytes;
  return {.queue_bytes = self.queue.bytes_in_use(),
          .queue_limit_bytes = self.queue.limit_bytes(),
          .loss = loss,
          .of_thread = std::move(snapshot)};
}

const RecordingReport& Recorder::finish() {
  auto& self = *impl_;
  if (std::exchange(self.finished, true)) return self.report;
  while (!self.gaps.empty()) self.close_gap(self.gaps.begin()->first.first, self.gaps.begin()->first.second);
  self.queue.finish();
  self.thread.join();
  self.report.loss = self.writer->loss();
  self.report.calls = self.writer->calls();
  self.report.files = self.writer->files();
  return self.report;
}

const std::string& Recorder::first_path() const {
  return impl_->first_path;
}

MonotonicTime Recorder::opened() const {
  return impl_->opened;
}

}  // namespace ztape::proxy
