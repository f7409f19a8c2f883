// The recorder's work without its threads: records in, the capture's files and the index out. One thread at a time.
//
// A file that is full goes on in the next one. While the disk is full, what comes is missed and counted; there is a
// look for room each second, and then recording goes on behind a Gap. Any other error ends it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture-format/writer.h"
#include "proto/error.h"
#include "proto/words.h"
#include "proxy/authority_watch.h"
#include "proxy/capture_run.h"
#include "proxy/disk_sync.h"
#include "proxy/loss.h"
#include "proxy/record_queue.h"
#include "proxy/recorder_snapshot.h"
#include "proxy/tap.h"
#include "proxy/tracked_connection.h"

namespace ztape::proxy {

// A block is written when it is this old. With the queue's look-in time and a disk that keeps up, nothing older than
// 250 ms is missing after kill -9.
inline constexpr int64_t kBlockAgeNs = 80'000'000;
// How often there is a look for room on a full disk.
inline constexpr int64_t kRetryNs = 1'000'000'000;
// A new ClockAnchor is written when the two clocks have moved against each other by more than this.
inline constexpr int64_t kClockMoveNs = 10'000'000;

struct Compression {
  bool automatic = true;  // by what waits in the queue
  int level = 1;          // where not automatic
};

struct RecordWriterOptions {
  MonotonicTime opened;  // the zero of the capture's times
  Compression compression;
  bool sync = false;  // fdatasync about every second
  // What a user must know; a few lines at most. With `sync`, also on that thread.
  std::function<void(const std::string&)> on_problem = [](const std::string&) {};
  // A new file was begun, by its path.
  std::function<void(const std::string&)> on_new_file = [](const std::string&) {};
  // CLOCK_MONOTONIC and CLOCK_REALTIME; where empty, the real ones.
  std::function<MonotonicTime()> monotonic_clock;
  std::function<WallTime()> wall_clock;
};

// What became of the files.
struct FileReport {
  uint64_t bytes = 0;  // in all files
  uint64_t files = 0;
  uint64_t deleted = 0;  // of them, to keep the newest
  uint64_t outages = 0;  // how often the disk was full
  std::string outage;    // the last such error
  uint64_t sync_failures = 0;
  std::string sync_failure;  // the first
  uint64_t unfinished = 0;   // files, besides the last, that have no end
  std::string error;         // why the last file is not whole, or ""
};

// Nothing can be written for want of room.
struct Outage {
  Error error;
  MonotonicTime next_look;
  std::vector<std::unique_ptr<TrackedConnection>> closed;  // meanwhile
  Stretch others;  // of connections that came and went meanwhile, beyond kMostClosed
  uint64_t other_connections = 0;
};

class RecordWriter {
 public:
  // Makes the first file. Errors: those of CaptureRun::begin and CaptureWriter::create.
  static Result<std::unique_ptr<RecordWriter>> start(CaptureRunOptions run, RecordWriterOptions options);
  ~RecordWriter();

  // From now on `on_notice` is told, a few times at most, when wallets ask for the upstream by another name.
  void watch_authorities(AuthorityWatch::OnNotice on_notice) { authorities_.set_on_notice(std::move(on_notice)); }

  void write(const QueuedRecord& record, MonotonicTime now);
  // Writes the open block where it is due; looks for room where the disk was full.
  void flush_if_due(MonotonicTime now);
  void choose_level(std::size_t queued_bytes);
  // Everything is in the file: nothing to flush.
  [[nodiscard]] bool idle() const;
  // Goes on in a new file, whatever the size of this one. Where that cannot be made, in this one.
  void rotate(MonotonicTime now);
  void finish(MonotonicTime now);

  [[nodiscard]] const Loss& loss() const { return loss_; }
  [[nodiscard]] const CallCounts& calls() const { return calls_; }
  [[nodiscard]] FileReport files() const;
  // What is told while the recording goes on. Every call counts whose outcome is known by now.
  RecorderSnapshot snapshot(MonotonicTime now);
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  [[nodiscard]] uint64_t bytes_written() const { return earlier_bytes_ + file_->bytes_written(); }
  [[nodiscard]] const std::string& path() const { return run_->path(); }  // of the present file

  // Stops recording: `error` is told once, what follows is counted as lost.
  void give_up(const Error& error);

 private:
  enum class Put { in_block, in_file, refused };
  using Connections = std::unordered_map<ConnectionId, std::unique_ptr<TrackedConnection>>;

  RecordWriter(std::unique_ptr<CaptureRun> run, std::unique_ptr<CaptureWriter> file, RecordWriterOptions options);

  [[nodiscard]] TrackedConnection* find(ConnectionId id);
  void write_chunk(TrackedConnection* connection, const ChunkView& chunk);
  void write_other(const capture::Record& record);
  void write_open(const capture::Record& record);
  void write_close(const capture::ConnectionClose& close);
  void write_gap(const capture::Record& record);
  void append(const capture::Record& record);

  // Into the file, unless nothing can be written.
  template <typename Append>
  Put put(Append&& append, const Loss& what);
  Put put_record(const capture::Record& record);
  Put put_close(const capture::ConnectionClose& close);
  void note_in_block(TrackedConnection& connection);
  void block_written();
  bool flush();

  // record_files.cc
  [[nodiscard]] bool rotation_is_due(MonotonicTime now) const;
  void keep_room_for_the_end();
  void write_marks();
  [[nodiscard]] bool anchor_is_due() const;
  [[nodiscard]] int64_t clock_offset_ns() const;
  void append_anchor();
  void begin_file(std::unique_ptr<CaptureWriter> file);

  // record_outage.cc
  void begin_outage(const Error& error);
  void keep_closed(std::unique_ptr<TrackedConnection> connection);
  void look_for_room(MonotonicTime now);
  void catch_up(Outage over);
  bool catch_up(TrackedConnection& connection, const std::string& reason);
  void end_in_outage();

  std::unique_ptr<CaptureRun> run_;
  std::unique_ptr<CaptureWriter> file_;
  RecordWriterOptions options_;
  std::unique_ptr<DiskSync> sync_;
  int level_;
  MonotonicTime now_;
  MonotonicTime oldest_;  // when the first of what waits for a flush came
  MonotonicTime last_anchor_;
  int64_t anchor_offset_ns_ = 0;
  Connections connections_;
  std::vector<TrackedConnection*> in_block_;  // that have something in the open block
  std::vector<std::unique_ptr<TrackedConnection>> closed_in_block_;
  CallCounts calls_;
  AuthorityWatch authorities_;
  Loss loss_;
  Loss loss_of_gaps_;
  Loss in_open_block_;          // what is lost if it cannot be written
  std::deque<Loss> unflushed_;  // the same of the blocks that are not known to be in the file
  std::optional<Outage> outage_;
  bool ending_ = false;
  FileReport report_;
  uint64_t earlier_bytes_ = 0;  // in the files before
  uint64_t opening_bytes_ = 0;  // of this file: what repeats where its connections stand
  MonotonicTime next_rotation_;
  bool rotation_failure_told_ = false;
  std::optional<Error> error_;
};

}  // namespace ztape::proxy
