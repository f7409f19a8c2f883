// Proves a capture: every block's checksum and number, every connection's bytes against count and hash, the seek table
// and the trailer byte for byte.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture-format/reader.h"
#include "proto/error.h"

namespace ztape {

struct ConnectionFault {
  uint64_t connection = 0;
  std::string message;
};

struct VerifyReport {
  uint64_t blocks = 0;
  uint64_t records = 0;
  uint64_t connections = 0;  // opened in this file
  uint64_t connections_continued =
      0;                            // of those, how many were open before this file: their earlier bytes are elsewhere
  uint64_t connections_proven = 0;  // closed, and their bytes match count and hash
  // Of those, how many have a Gap: count and hash prove what was recorded, not what crossed.
  uint64_t connections_with_gaps = 0;
  uint64_t connections_open = 0;  // no ConnectionClose: still open when the file ended
  uint64_t chunk_bytes = 0;
  uint64_t gaps = 0;  // Gap records: what the recorder itself says is missing
  uint64_t gap_bytes = 0;
  std::vector<std::string> marks;  // what the recorder or a person remarked
  std::vector<Damage> damage;
  std::vector<ConnectionFault> faults;

  [[nodiscard]] bool torn() const;     // the file ends too early, or could not be read to its end
  [[nodiscard]] bool corrupt() const;  // damage that is not torn, or a fault
};

// Reads the whole capture. Errors only where it cannot be opened at all.
Result<VerifyReport> verify(const std::string& path);
VerifyReport verify(CaptureReader& reader);

}  // namespace ztape
