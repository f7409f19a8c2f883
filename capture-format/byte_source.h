// Where a reader's bytes come from: a file, read by pread(2) at any offset; a pipe, of which only what is still needed
// is held; or bytes in memory. Owns the descriptor.
//
// A file's size is that of the moment of opening, unless it is followed. A pipe always grows until its end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/error.h"

namespace ztape {

class ByteSource {
 public:
  // "-" is stdin. Errors: io, with the system's words.
  static Result<ByteSource> open(const std::string& path);
  static ByteSource of_bytes(std::string bytes, std::string name);

  ByteSource(ByteSource&& other) noexcept;
  ByteSource& operator=(ByteSource&&) = delete;
  ~ByteSource();

  [[nodiscard]] uint64_t size() const { return size_; }  // known so far
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool is_pipe() const { return pipe_; }

  // More may come: a pipe that has not ended, or a followed file that somebody may still be writing.
  [[nodiscard]] bool growing() const { return growing_; }
  // The file grows until whoever writes it has let go of its lock.
  void follow() { growing_ = growing_ || (fd_ >= 0 && !pipe_); }

  // Waits for more, at most so long (negative: as long as it takes; a signal ends it early). A pipe gives what it has
  // at its end to nobody else. Errors: io; torn, where a followed file has become shorter.
  Result<void> grow(std::chrono::milliseconds at_most);

  // A pipe's bytes before that offset are not wanted any more.
  void forget_before(uint64_t offset);

  // Puts [offset, offset + length), or what of it lies in the file, into `into` (resized to what there was). A file
  // that became shorter since gives less, a pipe nothing of what was forgotten. Errors: io.
  Result<void> read(uint64_t offset, uint64_t length, std::vector<uint8_t>& into) const;

 private:
  ByteSource() = default;
  Result<void> grow_pipe(std::chrono::milliseconds at_most);
  Result<void> grow_file(std::chrono::milliseconds at_most);
  [[nodiscard]] bool writer_is_gone() const;

  std::string name_;
  std::string bytes_;  // in memory, from forgotten_ on
  uint64_t forgotten_ = 0;
  uint64_t size_ = 0;
  int fd_ = -1;  // -1: in memory
  bool owned_ = false;
  bool pipe_ = false;
  bool growing_ = false;
  std::chrono::milliseconds idle_{0};  // how long a followed file has not grown
};

}  // namespace ztape
