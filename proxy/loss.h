// What did not get into the file.
#pragma once

#include <cstdint>

namespace ztape::proxy {

struct Loss {
  uint64_t chunks = 0;
  uint64_t bytes = 0;    // of traffic
  uint64_t records = 0;  // other than chunks
  uint64_t gaps = 0;     // Gap records that say so in the file
  [[nodiscard]] bool nothing() const { return chunks == 0 && bytes == 0 && records == 0 && gaps == 0; }
};

}  // namespace ztape::proxy
