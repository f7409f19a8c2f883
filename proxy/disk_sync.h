// fdatasync(2) on a thread of its own, about once a second while something is written: what the disk takes for it, the
// recorder does not wait for. Failures are counted and told; the kernel forgets them, and so does not try again.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/descriptor.h"

namespace ztape::proxy {

class DiskSync {
 public:
  static constexpr int64_t kIntervalNs = 1'000'000'000;

  // `on_failure` is called on this object's thread, for the first failures (kMostTold).
  explicit DiskSync(std::function<void(const std::string&)> on_failure);
  ~DiskSync();  // finishes
  DiskSync(const DiskSync&) = delete;
  DiskSync& operator=(const DiskSync&) = delete;

  // From now on this file, by a descriptor of its own; the one before is synced once more.
  void watch(int fd, const std::string& name);
  // Something was written: it is synced within about a second.
  void written();
  // Syncs now, and waits for it.
  void sync_now();
  // Syncs what is left and ends the thread. Idempotent.
  void finish();

  // "a.ztape: Input/output error", those that were not taken yet.
  std::vector<std::string> take_failures();
  [[nodiscard]] uint64_t failures() const;

  static constexpr uint64_t kMostTold = 10;

 private:
  struct File {
    net::Descriptor fd;
    std::string name;
  };
  void run();
  void sync(std::unique_lock<std::mutex>& lock, const File& file);

  std::function<void(const std::string&)> on_failure_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<File> files_;  // the last is the one that is written; the others wait for their last sync
  bool written_ = false;
  bool now_ = false;
  bool finished_ = false;
  uint64_t failure_count_ = 0;
  std::vector<std::string> failures_;
  std::thread thread_;
};

}  // namespace ztape::proxy
