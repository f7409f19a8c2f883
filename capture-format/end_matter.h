// Compares a file's seek table with the one that its blocks say it must have. Private to this folder.
#pragma once

#include <cstdint>
#include <span>

#include "capture-format/byte_source.h"
#include "capture-format/layout.h"

namespace ztape {

struct SeekTableCheck {
  uint64_t whole_bytes = 0;    // what the table must have
  uint64_t present_bytes = 0;  // from where it must begin to the end of the file
  bool wrong = false;          // a byte within both differs
  uint64_t first_wrong = 0;    // offset in the file
  uint64_t last_wrong = 0;

  [[nodiscard]] bool exact() const { return !wrong && present_bytes == whole_bytes; }
};

// `offset` is where the table must begin, `known` the blocks in ascending order. The entries of other blocks are not
// compared. Errors: io.
Result<SeekTableCheck> check_seek_table(const ByteSource& source, uint64_t offset,
                                        std::span<const layout::BlockSizes> known, uint64_t block_count);

}  // namespace ztape
