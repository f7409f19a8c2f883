// Writes one capture file: records into blocks, blocks into zstd frames, the seek table at the end (FORMAT.md).
//
// Owns the file descriptor. Knows no clock and starts no thread: whoever calls decides when `flush` is due. One thread
// at a time. After an error every later call returns the same error, and the file up to the last whole block is good;
// but after no_room, the block stays open, takes nothing more, and flush() and finish() try again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "proto/capture.pb.h"
#include "proto/encoded_record.h"
#include "proto/error.h"
#include "proto/words.h"

namespace ztape {

// The level, and those below it, at which nothing is compressed: for when there is no time.
inline constexpr int kStoredLevel = -100;

struct WriterOptions {
  bool overwrite = false;  // otherwise an existing file is an error (usage)
  // zstd's level: 1..19, or negative for its fast levels, which leave what does not compress as it is; or kStoredLevel.
  int compression_level = 1;
  std::size_t block_bytes = 512 * 1024;  // of records, before a block is closed by itself
  // When the disk gets full, the room for the trailer and the seek table and for so many bytes more is there: see
  // begin_end().
  bool keep_room_for_the_end = false;
};

// A Chunk record by reference, so that its bytes are copied once, into the block.
struct ChunkView {
  ConnectionId connection = 0;
  Direction direction = Direction::client_to_server;
  uint64_t offset = 0;
  int64_t time_ns = 0;
  std::span<const uint8_t> bytes = {};
  capture::End end = capture::NOT_ENDED;
  std::string_view error = {};  // where end is FAILED
};

class CaptureWriter {
 public:
  // Creates `path` with mode 0600 ("-" is stdout) and writes `start` as the first record, in a block of its own.
  // `start.format_version` is set here. Errors: usage (exists), io.
  static Result<std::unique_ptr<CaptureWriter>> create(const std::string& path, capture::CaptureStart start,
                                                       const WriterOptions& options = {});
  ~CaptureWriter();

  // Errors: over_limit (the record is not taken); io and no_room, when a block that is full cannot be written: the
  // record is the last in it.
  Result<void> append(const capture::Record& record);
  Result<void> append_chunk(const ChunkView& chunk);
  // One of the index, or any other that append() takes no account of.
  Result<void> append_encoded(const EncodedRecord& record);

  // Appends the ConnectionClose of `close.connection` with the byte counts, hashes and ends of the chunks that this
  // writer was given for it filled in.
  Result<void> append_close(capture::ConnectionClose close);

  // Closes the open block, if it has records. All that was appended is in the file then.
  Result<void> flush();

  // The records of the open block are lost. For what they were of: append_close() would say more than is there.
  void drop_block();

  // What is appended from now on may use the room that was kept for the end.
  void begin_end();
  // How much of it shall be there besides trailer and seek table.
  void set_end_bytes(std::size_t bytes);
  // Whether so much would find room now. Errors: no_room.
  Result<void> look_for_room(std::size_t bytes);

  // Flushes, writes the trailer and the seek table, closes. A file without them reads as torn.
  Result<void> finish();

  // For the next block.
  void set_compression_level(int level);
  [[nodiscard]] uint64_t bytes_written() const;           // of whole blocks; a part may wait for flush() still
  [[nodiscard]] std::size_t block_bytes_pending() const;  // in the open block
  [[nodiscard]] bool flushed() const;                     // nothing waits for flush()
  [[nodiscard]] uint64_t blocks_written() const;
  // Of the blocks written, those that wait for flush(). After an error: those that are not in the file.
  [[nodiscard]] std::size_t blocks_pending() const;
  [[nodiscard]] int descriptor() const;  // of the file; it stays the writer's

 private:
  struct Impl;
  explicit CaptureWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ztape
