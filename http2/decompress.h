// Undoes the compression of one gRPC message (gRPC over HTTP/2, "Message-Encoding").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proto/error.h"

namespace ztape::http2 {

// `encoding`: "gzip", "deflate" (zlib's form, as gRPC means it) or "identity". Errors: protocol (another encoding,
// broken bytes), over_limit (more than `max_bytes`).
Result<std::string> decompress(std::string_view encoding, std::string_view bytes, uint64_t max_bytes);

}  // namespace ztape::http2
