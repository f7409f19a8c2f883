// The file that blocks go to, or a pipe. What is written in bulk goes past the page cache (O_DIRECT), where the file
// system lets it: on a machine that is busy with the traffic, copying into the cache and writing back from it costs
// several times the relay's own work. The rest goes through the cache, so that a quiet recorder does not wait for the
// disk.
//
// Owns the descriptor. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "proto/error.h"

namespace ztape {

class OutputFile {
 public:
  // Creates `path` with mode 0600 ("-" is stdout) and locks it. Errors: usage (exists, somebody writes it), io.
  static Result<std::unique_ptr<OutputFile>> create(const std::string& path, bool overwrite);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Room for `size` bytes behind all that was committed. Valid until the next call of any method.
  uint8_t* room(std::size_t size);

  // The first `size` bytes of the room are in the file on return, if only in the page cache. In bulk they go past it,
  // as far as they fill sectors. Errors: io, no_room; then the file ends where it ended before, as far as it can be
  // cut. After no_room the same may be tried again.
  Result<void> commit(std::size_t size, bool bulk);

  // Allocates the disk's blocks for the next `bytes` bytes, so that what is to be written still finds room when the
  // disk is full. Where the file system cannot do that, nothing. Errors: no_room.
  Result<void> keep_room(std::size_t bytes);

  Result<void> sync();   // fdatasync(2). Errors: io
  Result<void> close();  // Errors: io; also where the file was deleted meanwhile

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] uint64_t size() const { return size_; }
  [[nodiscard]] int descriptor() const { return fd_; }  // stays this object's
  void remove(const std::string& path) const;           // an unfinished one of which nothing is left; a pipe stays

 private:
  OutputFile() = default;
  struct FreeBuffer {
    void operator()(uint8_t* buffer) const;
  };

  Result<void> allocate(uint64_t bytes);
  void cut(uint64_t size);
  Result<void> write(const uint8_t* bytes, std::size_t size, uint64_t offset, bool direct);
  bool set_direct(bool on);
  void keep_tail(std::size_t filled);
  std::unexpected<Error> failed(const std::string& what, int error) const;

  std::string name_;
  int fd_ = -1;
  bool owned_ = false;    // stdout is not ours to close
  bool regular_ = false;  // not a pipe: can be cut and removed
  bool can_go_direct_ = false;
  bool direct_ = false;  // as the descriptor is set now

  // The last, incomplete sector of the file, and behind it what room() gave.
  std::unique_ptr<uint8_t[], FreeBuffer> buffer_;
  std::size_t capacity_ = 0;
  std::size_t tail_ = 0;  // bytes of the incomplete sector
  uint64_t size_ = 0;

  bool can_allocate_ = false;
  uint64_t allocated_ = 0;  // up to where keep_room() has allocated
};

}  // namespace ztape
