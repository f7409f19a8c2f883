// Decodes the header blocks of one direction (RFC 7541) with nghttp2's inflater. Stateful: every block, in order.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "http2/frame.h"
#include "proto/error.h"

namespace ztape::http2 {

// A sender may ask for a larger dynamic table, but none is followed beyond this: what it could make us hold must be
// bounded.
inline constexpr uint32_t kMaxHpackTableBytes = 1024 * 1024;

// What an inflater knows between two blocks.
struct HpackState {
  HeaderList table;                  // the dynamic one, newest first
  uint32_t table_size = 4096;        // the largest it may be, as the encoder's last size update says
  uint32_t table_limit = 4096;       // SETTINGS_HEADER_TABLE_SIZE
  std::optional<uint32_t> size_due;  // the next block must begin with a size update of at most this
};

class HpackInflater {
 public:
  HpackInflater();

  // SETTINGS_HEADER_TABLE_SIZE, once the encoder of this direction has acknowledged it (RFC 7541, section 4.2).
  void set_table_size(uint32_t bytes);

  // One whole block into `fields`, whose memory is used again. An error (protocol, over_limit) leaves the state
  // unknown: do not call again.
  Result<void> inflate(std::span<const uint8_t> block, HeaderList& fields);

  [[nodiscard]] HpackState state() const;
  // Makes it know that instead. Errors: protocol (no inflater can have come to that); then do not use it any more.
  Result<void> restore(const HpackState& state);

 private:
  struct Delete {
    void operator()(nghttp2_hd_inflater* inflater) const { nghttp2_hd_inflate_del(inflater); }
  };
  std::unique_ptr<nghttp2_hd_inflater, Delete> inflater_;
  uint32_t table_limit_ = 4096;
  std::optional<uint32_t> size_due_;
};

}  // namespace ztape::http2
