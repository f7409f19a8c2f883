#include "proxy/disk_sync.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace ztape::proxy {

DiskSync::DiskSync(std::function<void(const std::string&)> on_failure)
    : on_failure_(std::move(on_failure)), thread_([this] { run(); }) {}

DiskSync::~DiskSync() {
  finish();
}

void DiskSync::watch(int fd, const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    files_.push_back({net::Descriptor(fcntl(fd, F_DUPFD_CLOEXEC, 0)), name});
  }
  changed_.notify_all();
}

void DiskSync::written() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(written_, true)) return;
  }
  changed_.notify_all();
}

void DiskSync::sync_now() {
  std::unique_lock lock(mutex_);
  if (finished_) return;
  now_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !now_; });
}

void DiskSync::finish() {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DiskSync::run() {
  std::unique_lock lock(mutex_);
  while (!finished_) {
    const auto at_once = [&] { return now_ || finished_ || files_.size() > 1; };
    changed_.wait(lock, [&] { return written_ || at_once(); });
    changed_.wait_for(lock, std::chrono::nanoseconds(kIntervalNs), at_once);
    while (files_.size() > 1) {
      const File file = std::move(files_.front());
      files_.pop_front();
      sync(lock, file);
    }
    if (std::exchange(written_, false) || now_ || finished_) {
      if (!files_.empty()) sync(lock, files_.back());  // only this thread takes it out
    }
    if (std::exchange(now_, false)) changed_.notify_all();
  }
}

void DiskSync::sync(std::unique_lock<std::mutex>& lock, const File& file) {
  lock.unlock();
  // A pipe or a terminal has nothing to sync.
  const bool failed = !file.fd.open() || fdatasync(file.fd.fd()) != 0;
  const int error = !file.fd.open() ? EMFILE : errno;
  if (!failed || error == EINVAL || error == EROFS) return lock.lock();
  const auto line = file.name + ": fdatasync: " + std::strerror(error);
  lock.lock();
  if (failures_.size() < kMostTold) failures_.push_back(line);
  if (++failure_count_ > kMostTold) return;
  lock.unlock();
  on_failure_(line + "; what was written may not survive a power cut");
  lock.lock();
}

std::vector<std::string> DiskSync::take_failures() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failures_, {});
}

uint64_t DiskSync::failures() const {
  const std::lock_guard lock(mutex_);
  return failure_count_;
}

}  // namespace ztape::proxy
