// The raw form of a connection: two files with exactly the bytes that crossed, and a table of the reads that brought
// them. For people and programs that want bytes and no format of ours (FORMAT.md, "The raw form").
//
//   connectionN.client_to_server, connectionN.server_to_client
//   connectionN.chunks.tsv: time in ns since the connection's opening, direction, length of a read | "eof" |
//   "err:NAME";
//                           the last row has "close" in the second column
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/capture.pb.h"
#include "proto/error.h"
#include "proto/words.h"

namespace ztape {

// A row of chunks.tsv.
struct RawRead {
  int64_t time_ns = 0;  // since the connection was opened
  Direction direction = Direction::client_to_server;
  uint64_t length = 0;
  capture::End end = capture::NOT_ENDED;
  std::string error;  // the system's name, where end is FAILED
};

struct RawConnection {
  uint64_t number = 0;
  std::string bytes[2];  // by direction
  std::vector<RawRead> reads;
  int64_t close_ns = -1;  // -1: no such row
};

// Every connectionN of a folder, by number. Errors: io; usage (no connection there, a row that is no row, lengths that
// do not sum up to the file), naming file and line.
Result<std::vector<RawConnection>> load_raw(const std::string& folder);

// Writes the raw form out of the records of a capture as they pass.
class RawWriter {
 public:
  // Creates the folder (0700) where it is missing. Existing files are an error (usage) unless `overwrite`.
  RawWriter(std::string folder, bool overwrite);
  ~RawWriter();

  Result<void> append(const capture::Record& record);
  Result<void> finish();

  [[nodiscard]] uint64_t connections() const { return connections_; }
  // Connections that were open before this file, a sentence each: what is written of them begins in the middle.
  [[nodiscard]] const std::vector<std::string>& beginnings() const { return beginnings_; }
  // What the capture does not have of a connection's bytes, a sentence each: the raw form has no way to show a hole.
  [[nodiscard]] const std::vector<std::string>& holes() const { return holes_; }

 private:
  struct Files;
  Result<Files*> files_of(uint64_t connection);
  Result<void> append_state(const capture::ConnectionState& state);
  Result<void> append_chunk(const capture::Chunk& chunk);

  std::string folder_;
  bool overwrite_;
  uint64_t connections_ = 0;
  std::map<uint64_t, std::unique_ptr<Files>> open_;
  std::vector<std::string> beginnings_;
  std::vector<std::string> holes_;
};

}  // namespace ztape
