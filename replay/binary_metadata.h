// gRPC's "true binary metadata": two peers of gRPC's C-core that both sent GRPC_ALLOW_TRUE_BINARY_METADATA (setting
// 0xfe03) give the value of a `-bin` header as a zero byte and the bytes themselves, where everyone else sends base64.
// HTTP/2 forbids the zero byte (RFC 9113, section 8.2.1), so nghttp2 calls such a header invalid. Pure.
#pragma once

#include <string_view>

#include "http2/frame.h"

namespace ztape::replay {

bool is_true_binary(std::string_view name, std::string_view value);

// Writes true binary values as base64 without padding, which every peer takes. A recorded header may go to a peer that
// never said it takes the other form.
void to_base64(http2::HeaderList& fields);

}  // namespace ztape::replay
