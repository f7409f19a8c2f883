// Records what the relays see, on a thread of its own behind a bounded queue. Never waits, and never fails the traffic:
// what the disk cannot take becomes a Gap. full() asks the relays to hold the traffic back for a moment first, since a
// queue that is drained as fast as the disk writes is no reason for a gap; or, asked for, for as long as it takes.
//
// Every method is for the loop's thread. Times of records are nanoseconds since `opened()`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "net/slab.h"
#include "proto/error.h"
#include "proto/words.h"
#include "proxy/record_writer.h"

namespace ztape::proxy {

struct RecorderOptions {
  std::string path;  // "-" is stdout
  bool overwrite = false;
  std::size_t queue_bytes = 16 * 1024 * 1024;
  bool hold_when_full = false;  // otherwise a Gap
  Compression compression;
  uint64_t rotate_bytes = 0;  // goes on in a new file at this size; 0: one file
  std::size_t keep = 0;       // the newest files; 0: all
  bool sync = false;          // fdatasync about every second
  std::string tool_version;
  std::map<std::string, std::string> settings;  // the options in force, by their long names
  std::map<std::string, std::string> notes;
  bool tell_status = false;  // somebody looks at status() while it records
  // On the recorder's thread, or that of fdatasync: something is wrong with the files; a line for the log.
  std::function<void(const std::string&)> on_problem = [](const std::string&) {};
  // The same: a new file was begun, by its path.
  std::function<void(const std::string&)> on_new_file = [](const std::string&) {};
  // The same for what a user should know and need not do anything about.
  std::function<void(const std::string&)> on_notice = [](const std::string&) {};
};

struct RecordingReport {
  Loss loss;
  CallCounts calls;
  FileReport files;

  // Everything that crossed is in the files, and they are what they shall be.
  [[nodiscard]] bool whole() const {
    return loss.nothing() && files.error.empty() && files.sync_failures == 0 && files.unfinished == 0;
  }
};

class Recorder {
 public:
  // Creates the first file and starts the thread. Errors: those of RecordWriter::start.
  static Result<std::unique_ptr<Recorder>> start(RecorderOptions options);
  ~Recorder();  // finishes
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void chunk(ConnectionId connection, Direction direction, uint64_t offset, net::Slice bytes, MonotonicTime time);
  // Any record but a chunk with bytes; it is taken whatever the queue holds.
  void record(capture::Record&& record);

  // True while the queue is full and the traffic is to wait; then `on_room` is called once there is room, on the
  // recorder's thread. Without hold_when_full: where the queue is nearly full, and the traffic may be asked to wait.
  bool full();
  // The traffic does not wait any longer: what does not fit is a Gap, and full() is false until `until`. No effect
  // with hold_when_full.
  void give_way(MonotonicTime until);
  [[nodiscard]] bool waits_without_end() const;  // hold_when_full
  // Before the first chunk.
  void set_on_room(std::function<void()> on_room);

  // Of the thread: what it told last, at most some 300 ms ago; nothing yet without RecorderOptions::tell_status.
  [[nodiscard]] RecorderStatus status() const;

  // Writes everything that waits, ends the thread and the file. Idempotent.
  const RecordingReport& finish();

  [[nodiscard]] const std::string& first_path() const;  // of the first file
  [[nodiscard]] MonotonicTime opened() const;
  [[nodiscard]] int64_t since_opened_ns(MonotonicTime time) const { return time - opened(); }

 private:
  struct Impl;
  explicit Recorder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ztape::proxy
