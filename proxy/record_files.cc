// RecordWriter's files: where one goes on in the next, how the last ends, and what is said in them of the clock and of
// the disk.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "proto/capture.pb.h"
#include "proxy/record_writer.h"

namespace ztape::proxy {
namespace {

// What the end of a file may take on a full disk: two Gaps for each connection, and something for all.
constexpr std::size_t kEndBytes = 64 * 1024;
constexpr std::size_t kEndBytesAConnection = 256;

constexpr int64_t kAnchorEveryNs = 60'000'000'000;

}  // namespace

// By how much the wall clock is ahead of the monotonic one.
int64_t RecordWriter::clock_offset_ns() const {
  return options_.wall_clock().unix_ns - options_.monotonic_clock().ns;
}

void RecordWriter::append_anchor() {
  capture::Record record;
  auto& anchor = *record.mutable_clock_anchor();
  const auto monotonic = options_.monotonic_clock();
  const auto wall = options_.wall_clock();
  last_anchor_ = now_;
  anchor_offset_ns_ = wall.unix_ns - monotonic.ns;
  anchor.set_monotonic_ns(monotonic.ns);
  anchor.set_realtime_unix_ns(wall.unix_ns);
  anchor.set_time_ns(monotonic - options_.opened);
  append(record);
}

bool RecordWriter::anchor_is_due() const {
  return now_ - last_anchor_ >= kAnchorEveryNs || std::abs(clock_offset_ns() - anchor_offset_ns_) > kClockMoveNs;
}

void RecordWriter::keep_room_for_the_end() {
  file_->set_end_bytes(kEndBytes + kEndBytesAConnection * connections_.size());
}

// What the disk would not promise stands in the capture, too.
void RecordWriter::write_marks() {
  for (const auto& line : sync_->take_failures()) {
    if (report_.sync_failure.empty()) report_.sync_failure = line;
    capture::Record record;
    record.mutable_mark()->set_time_ns(now_ - options_.opened);
    record.mutable_mark()->set_text(line + "; what was written before may not survive a power cut");
    append(record);
  }
}

bool RecordWriter::rotation_is_due(MonotonicTime now) const {
  if (!run_->rotates() || error_ || outage_ || now < next_rotation_) return false;
  const uint64_t bytes = file_->bytes_written() + file_->block_bytes_pending();
  // However little room a file has, more of it is traffic than what repeats where the connections stand.
  return bytes >= run_->rotate_bytes() && bytes >= 2 * opening_bytes_;
}

void RecordWriter::rotate(MonotonicTime now) {
  now_ = now;
  if (!flush()) return;
  auto next = run_->create_next();
  if (!next) {
    next_rotation_ = MonotonicTime{now.ns + kRetryNs};
    if (std::exchange(rotation_failure_told_, true)) return;
    options_.on_problem(next.error().line() + "; recording goes on in " + run_->path());
    return;
  }
  rotation_failure_told_ = false;
  append_anchor();
  if (const auto done = file_->finish(); !done) {
    ++report_.unfinished;
    options_.on_problem(done.error().line() + "; recording goes on in " + run_->path());
  }
  begin_file(std::move(*next));
  if (const auto done = run_->delete_old(); !done) options_.on_problem(done.error().line());
}

void RecordWriter::begin_file(std::unique_ptr<CaptureWriter> file) {
  outage_.reset();
  block_written();
  earlier_bytes_ += file_->bytes_written();
  file_ = std::move(file);
  ++report_.files;
  file_->set_compression_level(level_);
  keep_room_for_the_end();
  oldest_ = now_;
  if (sync_) {
    sync_->watch(file_->descriptor(), run_->path());
    sync_->written();
  }
  options_.on_new_file(run_->path());
  append_anchor();
  std::vector<TrackedConnection*> open;
  for (const auto& [id, connection] : connections_) open.push_back(connection.get());
  std::ranges::sort(open, {}, &TrackedConnection::id);
  for (auto* const connection : open) {
    connection->open_missed = true;
    connection->continue_due = true;
    connection->state_due = true;
    connection->block_dropped = false;
  }
  for (auto* const connection : open) {
    if (!catch_up(*connection, "")) break;
  }
  flush();
  opening_bytes_ = file_->bytes_written();
}

void RecordWriter::finish(MonotonicTime now) {
  now_ = now;
  ending_ = true;
  if (sync_ && !error_) {
    flush();
    sync_->sync_now();
    write_marks();
  }
  if (outage_) look_for_room(MonotonicTime{outage_->next_look.ns});
  if (outage_) end_in_outage();
  if (!error_) append_anchor();
  if (!error_) {
    if (const auto done = file_->finish(); !done) {
      give_up(done.error());
    } else {
      block_written();
    }
  }
  if (!sync_) return;
  sync_->finish();
  if (const auto failures = sync_->take_failures(); !failures.empty() && report_.sync_failure.empty()) {
    report_.sync_failure = failures.front();
  }
}

FileReport RecordWriter::files() const {
  FileReport report = report_;
  report.bytes = bytes_written();
  report.deleted = run_->deleted();
  if (sync_) report.sync_failures = sync_->failures();
  if (error_) report.error = error_->line();
  return report;
}

}  // namespace ztape::proxy
