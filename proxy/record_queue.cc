#include "proxy/record_queue.h"

#include <chrono>
#include <utility>

#include "proto/capture.pb.h"

namespace ztape::proxy {
namespace {

// How often the recorder looks in while records trickle, and how much makes it worth waking it earlier.
constexpr std::chrono::milliseconds kLookIn{20};
constexpr std::size_t kWakeBytes = 1024 * 1024;

}  // namespace

QueuedRecord::QueuedRecord(capture::Record&& other) : record(std::make_unique<capture::Record>(std::move(other))) {}
QueuedRecord::QueuedRecord(QueuedRecord&&) noexcept = default;
QueuedRecord& QueuedRecord::operator=(QueuedRecord&&) noexcept = default;
QueuedRecord::~QueuedRecord() = default;

void RecordQueue::push(QueuedRecord record) {
  const std::size_t cost = record.cost_bytes();
  bytes_.fetch_add(cost);
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(record));
    waiting_bytes_ += cost;
    wake = reader_ == Reader::idle || (reader_ == Reader::looking_in && waiting_bytes_ >= kWakeBytes);
    if (wake) reader_ = Reader::working;  // once is enough
  }
  if (wake) changed_.notify_one();
}

void RecordQueue::finish() {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  changed_.notify_one();
}

bool RecordQueue::take(std::vector<QueuedRecord>& batch, bool idle) {
  std::unique_lock lock(mutex_);
  const auto begin_wait = [&](Reader how) { reader_ = how; };
  if (idle) {
    if (waiting_.empty() && !finished_) begin_wait(Reader::idle);
    changed_.wait(lock, [&] { return !waiting_.empty() || finished_; });
  } else if (waiting_bytes_ < kWakeBytes && !finished_) {
    begin_wait(Reader::looking_in);
    changed_.wait_for(lock, kLookIn, [&] { return waiting_bytes_ >= kWakeBytes || finished_; });
  }
  reader_ = Reader::working;
  const bool last = finished_ && waiting_.empty();
  batch.swap(waiting_);
  waiting_bytes_ = 0;
  return !last;
}

}  // namespace ztape::proxy
