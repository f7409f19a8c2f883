// The records of one block, parsed: all of them, or the block is no good. Private to this folder.
#pragma once

#include <google/protobuf/arena.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "proto/capture.pb.h"

namespace ztape {

// The smallest and the largest time in nanoseconds of the capture's clock that records speak of.
struct TimeSpan {
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  bool empty = true;

  void add(int64_t time_ns);
  void add(const TimeSpan& other);
  void add(const capture::Record& record);
};

class RecordBlock {
 public:
  RecordBlock();

  // Forgets the records held before. False, and then holds none, unless `bytes` is exactly `count` records, each with
  // its length before it.
  bool parse(std::span<const uint8_t> bytes, uint64_t count);

  // How many records `bytes` are, by their lengths alone; UINT64_MAX if they are not.
  static uint64_t count(std::span<const uint8_t> bytes);

  // Valid until the next parse.
  [[nodiscard]] const std::vector<capture::Record*>& records() const { return records_; }
  [[nodiscard]] TimeSpan times() const;

 private:
  std::unique_ptr<char[]> first_bytes_;  // kept by the arena over a Reset
  google::protobuf::Arena arena_;
  std::vector<capture::Record*> records_;
};

}  // namespace ztape
