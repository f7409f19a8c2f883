// Sizes and durations as people write them on a command line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proto/error.h"

namespace ztape::cli {

// "65536", "64K", "64M", "1G" (powers of 1024; "KiB", "MiB", "GiB" too). Errors: usage.
Result<uint64_t> parse_bytes(std::string_view text);

// In nanoseconds, from "40ms", "2s", "1.5s", "10m", "1h", "250us", "100ns". Only 0 may stand without a unit.
// Errors: usage.
Result<int64_t> parse_duration(std::string_view text);

// RFC 3339 with a zone: "2026-12-01T03:12:45.5Z", "2026-12-01 04:12:45+01:00"; nanoseconds since 1970-01-01 UTC.
// Errors: usage.
Result<int64_t> parse_time(std::string_view text);

}  // namespace ztape::cli
