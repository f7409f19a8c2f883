#include "capture-format/write_behind.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace ztape {

// A file description of its own, so that the direct writes do not change how the others are made.
WriteBehind::WriteBehind(int fd)
    : fd_(fd), direct_fd_(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC)) {
  thread_ = std::thread([this] { run(); });
}

WriteBehind::~WriteBehind() {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (direct_fd_ >= 0) ::close(direct_fd_);
}

void WriteBehind::submit(const uint8_t* bytes, std::size_t size, uint64_t offset) {
  {
    const std::lock_guard lock(mutex_);
    bytes_ = bytes;
    size_ = size;
    offset_ = offset;
    error_ = 0;
  }
  changed_.notify_all();
}

int WriteBehind::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return size_ == 0; });
  return error_;
}

bool WriteBehind::busy() const {
  const std::lock_guard lock(mutex_);
  return size_ > 0;
}

void WriteBehind::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return size_ > 0 || finished_; });
    if (size_ == 0) return;
    lock.unlock();
    const int error = write_all(bytes_, size_, offset_);  // nobody changes them while size_ says that they are in work
    lock.lock();
    error_ = error;
    size_ = 0;
    changed_.notify_all();
  }
}

int WriteBehind::write_all(const uint8_t* bytes, std::size_t size, uint64_t offset) {
  bool direct = direct_fd_ >= 0;
  while (size > 0) {
    const ssize_t done = ::pwrite(direct ? direct_fd_ : fd_, bytes, size, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EINVAL && direct) {  // the file system refuses it only now
      ::close(direct_fd_);
      direct_fd_ = -1;
      direct = false;
      continue;
    }
    if (done < 0) return errno;
    offset += static_cast<uint64_t>(done);
    bytes += done;
    size -= static_cast<std::size_t>(done);
    // The disk took a part that ends within a sector: the rest is no direct write any more.
    if (offset % kSectorBytes != 0) direct = false;
  }
  return 0;
}

}  // namespace ztape
