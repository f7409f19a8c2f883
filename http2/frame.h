// An HTTP/2 frame as it stands in the bytes of one direction (RFC 9113, section 4.1), and the numbers of the protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/words.h"

namespace ztape::http2 {

// RFC 9113, section 6. A type beyond these is carried as its number.
enum FrameType : uint8_t {
  kData = 0x0,
  kHeaders = 0x1,
  kPriority = 0x2,
  kRstStream = 0x3,
  kSettings = 0x4,
  kPushPromise = 0x5,
  kPing = 0x6,
  kGoaway = 0x7,
  kWindowUpdate = 0x8,
  kContinuation = 0x9,
};

enum FrameFlag : uint8_t { kEndStream = 0x1, kAck = 0x1, kEndHeaders = 0x4, kPadded = 0x8, kPriorityFlag = 0x20 };

inline constexpr uint32_t kFrameHeaderBytes = 9;
inline constexpr std::string_view kClientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// "HEADERS"; "0x1f" for a type without a name.
std::string frame_type_name(uint8_t type);
// "CANCEL"; "0x2a" for a code without a name (RFC 9113, section 7).
std::string error_code_name(uint32_t code);

// Its content means something to a reader as a whole; DATA does so piece by piece, the others not at all.
bool is_parsed_whole(uint8_t type);

// Times are on the capture's clock, in nanoseconds: those of the chunks that brought the first and the last byte.
// Frames with equal last_byte_ns in one direction arrived in one read.
struct Frame {
  Direction direction = Direction::client_to_server;
  uint32_t stream = 0;
  uint8_t type = 0;
  uint8_t flags = 0;
  uint32_t length = 0;  // of the payload
  uint64_t offset = 0;  // of the frame's header in its direction
  int64_t first_byte_ns = 0;
  int64_t last_byte_ns = 0;
};

struct HeaderField {
  std::string name;
  std::string value;
  friend bool operator==(const HeaderField&, const HeaderField&) = default;
};

using HeaderList = std::vector<HeaderField>;

// The first value of that name; nullptr when absent. Names are lower case on the wire.
const std::string* find_header(const HeaderList& fields, std::string_view name);
// The same as a decimal number; nullopt when absent or anything else.
std::optional<int> find_number(const HeaderList& fields, std::string_view name);
// Of ASCII: field names of HTTP/1 and host names are the same in either case.
std::string lower_case(std::string_view text);

struct Setting {
  uint16_t id = 0;
  uint32_t value = 0;
  friend bool operator==(const Setting&, const Setting&) = default;
};

// The payload of a SETTINGS frame (RFC 9113, section 6.5.1); an incomplete last entry is left out.
std::vector<Setting> read_settings(std::span<const uint8_t> payload);

}  // namespace ztape::http2
