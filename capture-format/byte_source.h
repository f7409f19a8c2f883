// Where a reader's bytes come from: a file, read by pread(2) at any offset, or bytes in memory (pipes are read whole).
// Owns the descriptor. The size is that of the moment of opening: a file that still grows is read up to there.
#pragma once

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

  [[nodiscard]] uint64_t size() const { return size_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  // Puts [offset, offset + length), or what of it lies in the file, into `into` (resized to what there was). A file
  // that became shorter since gives less. Errors: io.
  Result<void> read(uint64_t offset, uint64_t length, std::vector<uint8_t>& into) const;

 private:
  ByteSource() = default;
  std::string name_;
  std::string bytes_;
  uint64_t size_ = 0;
  int fd_ = -1;  // -1: in memory
  bool owned_ = false;
};

}  // namespace ztape
