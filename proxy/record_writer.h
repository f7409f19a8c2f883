// The recorder's work without its thread: records in, the capture file and the index out. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "capture-format/writer.h"
#include "proto/error.h"
#include "proto/words.h"
#include "proxy/authority_watch.h"
#include "proxy/loss.h"
#include "proxy/record_queue.h"
#include "proxy/recorder_snapshot.h"
#include "proxy/tap.h"

namespace ztape::proxy {

// A block is written when it is this old. With the queue's look-in time and a disk that keeps up, nothing older than
// 250 ms is missing after kill -9.
inline constexpr int64_t kBlockAgeNs = 80'000'000;

struct Compression {
  bool automatic = true;  // by what waits in the queue
  int level = 1;          // where not automatic
};

class RecordWriter {
 public:
  using OnProblem = std::function<void(const std::string&)>;

  // `opened` is the zero of the capture's times. `on_problem` is called once, when the file cannot be written any more.
  RecordWriter(std::unique_ptr<CaptureWriter> file, MonotonicTime opened, Compression compression,
               OnProblem on_problem);
  ~RecordWriter();

  // From now on `on_notice` is told, a few times at most, when wallets ask for the upstream by another name.
  void watch_authorities(AuthorityWatch::OnNotice on_notice) { authorities_.set_on_notice(std::move(on_notice)); }

  void write(const QueuedRecord& record, MonotonicTime now);
  // Writes the open block where it is due.
  void flush_if_due(MonotonicTime now);
  void choose_level(std::size_t queued_bytes);
  // Everything is in the file: nothing to flush.
  [[nodiscard]] bool idle() const;
  void finish(MonotonicTime now);

  [[nodiscard]] const Loss& loss() const { return loss_; }
  [[nodiscard]] const CallCounts& calls() const { return calls_; }
  // What is told while the recording goes on. Every call counts whose outcome is known by now.
  RecorderSnapshot snapshot(MonotonicTime now);
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  [[nodiscard]] uint64_t bytes_written() const { return file_->bytes_written(); }

  // Stops recording: `error` is told once, what follows is counted as lost.
  void give_up(const Error& error);

 private:
  void write_chunk(const ChunkView& chunk);
  void write_other(const capture::Record& record);
  void append(const capture::Record& record);
  void append_anchor(MonotonicTime now);
  void note(const Result<void>& result, std::size_t pending_before, uint64_t chunk_bytes, bool is_chunk);

  std::unique_ptr<CaptureWriter> file_;
  MonotonicTime opened_;
  Compression compression_;
  int level_;
  OnProblem on_problem_;
  MonotonicTime block_started_;
  MonotonicTime last_anchor_;
  std::unordered_map<ConnectionId, std::unique_ptr<Tap>> taps_;
  CallCounts calls_;
  AuthorityWatch authorities_;
  Loss loss_;
  Loss loss_of_gaps_;
  Loss in_open_block_;  // what is lost if it cannot be written
  std::optional<Error> error_;
};

}  // namespace ztape::proxy
