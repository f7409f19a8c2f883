// Where the recorder's thread posts its snapshots and others read the latest one. The recorder's thread takes the lock
// only to post, a few times a second at most.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "proto/words.h"
#include "proxy/recorder_snapshot.h"

namespace ztape::proxy {

inline constexpr int64_t kSnapshotEveryNs = 250'000'000;

class SnapshotBoard {
 public:
  // The recorder's thread. Something changed: a snapshot is to be posted, when the last one is old enough.
  void note_change() { changed_ = true; }
  [[nodiscard]] bool changed() const { return changed_; }
  [[nodiscard]] bool due(MonotonicTime now) const { return changed_ && now - posted_ >= kSnapshotEveryNs; }
  void post(RecorderSnapshot snapshot, MonotonicTime now) {
    changed_ = false;
    posted_ = now;
    auto made = std::make_shared<const RecorderSnapshot>(std::move(snapshot));
    const std::lock_guard lock(mutex_);
    latest_.swap(made);
  }

  // Any thread. Never nullptr.
  [[nodiscard]] std::shared_ptr<const RecorderSnapshot> latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
  }

 private:
  bool changed_ = false;
  MonotonicTime posted_{-kSnapshotEveryNs};
  mutable std::mutex mutex_;
  std::shared_ptr<const RecorderSnapshot> latest_ = std::make_shared<const RecorderSnapshot>();
};

}  // namespace ztape::proxy
