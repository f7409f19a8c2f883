// The files of one recording: one, or with a size at which it goes on in a new one several, of which the newest may be
// kept. Never touches a file that it did not make. One thread at a time.
//
// `sync.ztape` with a size becomes sync.000001.ztape, sync.000002.ztape, ...: by name is by time.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "capture-format/writer.h"
#include "proto/capture.pb.h"
#include "proto/error.h"

namespace ztape::proxy {

struct CaptureRunOptions {
  std::string path;           // "-" is stdout
  bool overwrite = false;     // what is there already
  uint64_t rotate_bytes = 0;  // 0: one file
  std::size_t keep = 0;       // the newest; 0: all
  bool sync = false;          // the folder, too, so that a file's name survives a power cut
  int compression_level = 1;
  std::size_t block_bytes = 512 * 1024;
  capture::CaptureStart start;  // of each file, but for its number and the run
};

class CaptureRun {
 public:
  // Errors: usage (a file of that name, or of one that would come later, is there already), io.
  static Result<std::unique_ptr<CaptureRun>> begin(CaptureRunOptions options);

  // The next file, with its CaptureStart. Errors: those of CaptureWriter::create; the next call tries again.
  Result<std::unique_ptr<CaptureWriter>> create_next();
  // Deletes the oldest files of this run beyond those to keep. Errors: io, for each that could not be deleted.
  Result<void> delete_old();

  [[nodiscard]] bool rotates() const { return options_.rotate_bytes > 0; }
  [[nodiscard]] uint64_t rotate_bytes() const { return options_.rotate_bytes; }
  [[nodiscard]] const std::string& path() const { return path_; }  // of the newest
  [[nodiscard]] uint64_t deleted() const { return deleted_; }

 private:
  struct File {
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
  };

  explicit CaptureRun(CaptureRunOptions options) : options_(std::move(options)) {}
  [[nodiscard]] std::string path_of(uint64_t number) const;
  [[nodiscard]] Result<void> check_that_none_is_there() const;

  CaptureRunOptions options_;
  std::string path_;
  uint64_t number_ = 0;     // of the newest file
  uint64_t in_run_ = 0;     // how many there were
  std::deque<File> files_;  // of this run that are there still, the oldest first
  uint64_t deleted_ = 0;
};

}  // namespace ztape::proxy
