// What the recorder knows of a connection until all of it is in a file: where its bytes stand, what of them is not
// there, and its tap, so that a new file or what comes behind a gap can begin with its state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "proto/capture.pb.h"
#include "proto/words.h"
#include "proxy/tap.h"

namespace ztape::proxy {

// A stretch of one direction that is in no file yet.
struct Stretch {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  uint64_t records = 0;
  int64_t first_ns = 0;
  int64_t last_ns = 0;

  [[nodiscard]] bool empty() const { return records == 0; }
  void add(uint64_t offset, uint64_t more_bytes, uint64_t more_records, int64_t first_time_ns, int64_t last_time_ns);
  void add_behind(const Stretch& other);
};

struct TrackedConnection {
  struct DirectionPart {
    Stretch in_block;   // of the block that is open: lost where that cannot be written
    Stretch missed;     // behind it, while nothing can be written
    uint64_t next = 0;  // the offset behind all that has come
    capture::End end = capture::NOT_ENDED;
  };

  ConnectionId id = 0;
  capture::Record open;        // ConnectionOpen
  bool open_in_block = false;  // that record, as above
  bool open_missed = false;
  bool in_list = false;                           // of those that have something in the open block
  bool block_dropped = false;                     // what the file's writer counted of it is not all there
  std::unique_ptr<Tap> tap;                       // until it is closed
  DirectionPart parts[2];                         // by direction
  capture::TcpInfo tcp_info[2];                   // the last of each side
  std::optional<capture::ConnectionClose> close;  // missed
  bool state_due = false;                         // behind a gap
  bool continue_due = false;                      // this file has not said yet that it was open before

  [[nodiscard]] DirectionPart& part(Direction direction) { return parts[index(direction)]; }
  [[nodiscard]] bool missed_something() const;
  // The open block is in the file.
  void block_written();
  // The open block will not be in the file.
  void drop_block();

  // ConnectionState: `continued` at a new file.
  void fill_state(capture::Record& record, int64_t time_ns, bool continued) const;
  // The Gap of what was missed in that direction, which then is not missed but said. nullopt: nothing.
  std::optional<capture::Record> take_gap(Direction direction, const std::string& reason);
};

}  // namespace ztape::proxy
