// The queue between the loop's thread and the recorder's: bounded in bytes, one lock that is hardly ever contended, and
// no system call while the recorder is awake or looks in by itself.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "net/slab.h"
#include "proto/words.h"

namespace ztape::capture {
class Record;
}

namespace ztape::proxy {

// A chunk by reference to the bytes that the relay sends, or any other record.
struct QueuedRecord {
  QueuedRecord() = default;
  explicit QueuedRecord(capture::Record&& other);
  QueuedRecord(QueuedRecord&&) noexcept;
  QueuedRecord& operator=(QueuedRecord&&) noexcept;
  ~QueuedRecord();

  ConnectionId connection = 0;
  uint64_t offset = 0;
  int64_t time_ns = 0;
  net::Slice bytes;
  std::unique_ptr<capture::Record> record;  // set: this is the record, and the fields above are not
  Direction direction = Direction::client_to_server;

  [[nodiscard]] std::size_t cost_bytes() const { return bytes.size() + sizeof(QueuedRecord); }
};

class RecordQueue {
 public:
  explicit RecordQueue(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // The loop's thread. push() takes anything; whoever fills the queue asks fits() before.
  [[nodiscard]] bool fits(std::size_t bytes) const { return bytes_in_use() + bytes <= limit_bytes_; }
  void push(QueuedRecord record);
  void finish();  // nothing is pushed any more

  // The recorder's thread. Swaps everything that waits into `batch`, which must be empty. Waits for it: for a while
  // where `idle` is false, without limit (until a push) where it is true. False: finished, and nothing is left.
  bool take(std::vector<QueuedRecord>& batch, bool idle);
  // So many bytes of a batch are dealt with; makes room.
  void release(std::size_t bytes) { bytes_.fetch_sub(bytes); }

  // Any thread. What waits and what of the batch in work is not released yet.
  [[nodiscard]] std::size_t bytes_in_use() const { return bytes_.load(); }
  [[nodiscard]] std::size_t limit_bytes() const { return limit_bytes_; }

 private:
  const std::size_t limit_bytes_;
  std::atomic<std::size_t> bytes_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<QueuedRecord> waiting_;
  std::size_t waiting_bytes_ = 0;
  enum class Reader { working, looking_in, idle } reader_ = Reader::working;
  bool finished_ = false;
};

}  // namespace ztape::proxy
