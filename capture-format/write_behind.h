// One large write at a time on a thread of its own, past the page cache (O_DIRECT) where the file system lets it: on a
// machine that is busy with the traffic, copying into the cache and writing back from it costs several times the
// relay's own work, and waiting for the disk costs the recorder the time in which it could take the next block. Private
// to this folder.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

namespace ztape {

class WriteBehind {
 public:
  // Direct I/O wants offsets, lengths and memory aligned to the device's logical block (open(2), O_DIRECT): 512 or
  // 4096.
  static constexpr std::size_t kSectorBytes = 4096;

  // Of a regular file; the descriptor stays the caller's.
  explicit WriteBehind(int fd);
  ~WriteBehind();  // waits
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  // The bytes, whole sectors of them, stay as they are until wait() has returned. Not before that of the last one.
  void submit(const uint8_t* bytes, std::size_t size, uint64_t offset);
  // Until what was submitted is in the file. An errno if it is not, else 0.
  int wait();
  [[nodiscard]] bool busy() const;

 private:
  void run();
  int write_all(const uint8_t* bytes, std::size_t size, uint64_t offset);

  const int fd_;
  int direct_fd_;  // -1: the file system has no direct I/O
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  const uint8_t* bytes_ = nullptr;
  std::size_t size_ = 0;  // 0: nothing to do
  uint64_t offset_ = 0;
  int error_ = 0;
  bool finished_ = false;
  std::thread thread_;
};

}  // namespace ztape
