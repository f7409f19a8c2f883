// A Record that is encoded already.
#pragma once

#include <cstdint>
#include <span>

namespace ztape {

struct EncodedRecord {
  std::span<const uint8_t> bytes;
  int64_t first_ns = 0;  // the times that it speaks of, of the capture's clock
  int64_t last_ns = 0;
};

}  // namespace ztape
