// The file that blocks go to, or a pipe. Blocks for which the disk has promised room are collected, and what comes in
// bulk is written behind (WriteBehind) while the next blocks are made. The rest goes through the page cache, so that a
// quiet recorder does not wait for the disk.
//
// Owns the descriptor. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "capture-format/write_behind.h"
#include "proto/error.h"

namespace ztape {

class OutputFile {
 public:
  // Creates `path` with mode 0600 ("-" is stdout) and locks it. Errors: usage (exists, somebody writes it), io.
  static Result<std::unique_ptr<OutputFile>> create(const std::string& path, bool overwrite);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Room for `size` bytes behind all that was committed, of which the first `kept` are what they were in the room
  // before it. Valid until the next room(), commit() or flush().
  uint8_t* room(std::size_t size, std::size_t kept = 0);

  // The first `size` bytes of the room belong to the file. Where keep_room() was asked before, they may wait in memory
  // until flush(); otherwise they are in the file on return, if only in the page cache. Errors: io, no_room; after
  // no_room they do not belong to it, and the same may be tried again.
  Result<void> commit(std::size_t size);

  // All that was committed is in the file, if only in the page cache. Errors: io, no_room.
  Result<void> flush();

  // Allocates the disk's blocks for the next `bytes` bytes, so that what is to be written still finds room when the
  // disk is full. Where the file system cannot do that, nothing. Errors: no_room.
  Result<void> keep_room(std::size_t bytes);

  Result<void> close();     // flushes. Errors: io; also where the file was deleted meanwhile
  void cut(uint64_t size);  // what is behind it is of no use

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] uint64_t size() const { return size_; }  // committed
  [[nodiscard]] uint64_t in_file();                      // of it, as far as it is in the file without a gap
  [[nodiscard]] int descriptor() const { return fd_; }   // stays this object's
  void remove(const std::string& path) const;            // an unfinished one of which nothing is left; a pipe stays

 private:
  OutputFile() = default;
  struct Free {
    void operator()(uint8_t* buffer) const;
  };
  struct Buffer {
    void grow(std::size_t wanted, std::size_t kept);
    std::unique_ptr<uint8_t[], Free> bytes;
    std::size_t capacity = 0;
    std::size_t filled = 0;
  };

  Result<void> allocate(uint64_t bytes);
  Result<void> write(const uint8_t* bytes, std::size_t size);
  Result<void> write_behind();
  Result<void> wait();
  std::unexpected<Error> broken() const;
  std::unexpected<Error> failed(const std::string& what, int error) const;

  std::string name_;
  int fd_ = -1;
  bool owned_ = false;    // stdout is not ours to close
  bool regular_ = false;  // not a pipe: can be cut and removed

  uint64_t size_ = 0;
  uint64_t in_file_ = 0;
  bool can_allocate_ = false;
  uint64_t allocated_ = 0;  // up to where keep_room() has allocated

  // The end of what was committed, from a sector's beginning on, and behind it what room() gave. Some of it may be in
  // the file.
  Buffer buffer_;
  Buffer other_;  // the one that is written behind
  std::unique_ptr<WriteBehind> behind_;
  uint64_t behind_to_ = 0;  // up to where the present write goes; 0: there is none
  int error_ = 0;           // of a write behind: for good
};

}  // namespace ztape
