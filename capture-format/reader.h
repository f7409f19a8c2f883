// Reads a capture: every whole block, past whatever is damaged, and says what is missing. Never a wrong record.
//
// Owns the file. One thread at a time. Memory: one block.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proto/capture.pb.h"
#include "proto/error.h"

namespace ztape {

// One place where the file is not what was written.
struct Damage {
  // corrupt; torn: the file ends too early; over_limit: a block larger than 64 MiB; io: the system refused to read it
  ErrorCode code = ErrorCode::corrupt;
  uint64_t offset = 0;       // in the file
  uint64_t bytes = 0;        // how many bytes of the file are not readable here
  uint64_t first_block = 0;  // the blocks missing here: [first_block, first_block + block_count)
  uint64_t block_count = 0;  // 0: only index or padding was hit, or (torn) nobody knows how many would follow
  std::string message;       // a sentence
};

// "torn", "corrupt", "over_limit" or "io".
std::string_view kind(const Damage& damage);

class ByteSource;

class CaptureReader {
 public:
  // "-" is stdin. Errors: io, not_a_capture, unsupported_version. A damaged capture opens: damage is reported below.
  static Result<std::unique_ptr<CaptureReader>> open(const std::string& path);
  // The same over bytes in memory (tests, fuzzing); `name` is what errors call it.
  static Result<std::unique_ptr<CaptureReader>> open_bytes(std::string bytes, const std::string& name);
  ~CaptureReader();

  // Reads a capture that may still be being written: next() gives what is there, and wait() waits for more, until the
  // trailer, or the end of a pipe, or until the writer is gone without one, which is damage (torn). Errors as open().
  static Result<std::unique_ptr<CaptureReader>> follow(const std::string& path);

  // The next record, valid until the next call. nullptr at the end; of a followed capture also where no more is there
  // yet: then ended() is false.
  const capture::Record* next();
  [[nodiscard]] bool ended() const;
  // Waits for more of a followed capture, at most so long. A signal ends it early.
  void wait(std::chrono::milliseconds at_most);

  // What has been found so far; complete once next() has returned nullptr.
  [[nodiscard]] const std::vector<Damage>& damage() const;
  [[nodiscard]] uint64_t blocks_read() const;
  [[nodiscard]] uint64_t records_read() const;
  [[nodiscard]] const std::string& name() const;

 private:
  struct Impl;
  static Result<std::unique_ptr<CaptureReader>> of_source(ByteSource source);
  explicit CaptureReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ztape
