// The recorded request headers as they are sent to a target: in their order, with what belongs to the recorded
// connection replaced. Pure.
#pragma once

#include <string>

#include "http2/frame.h"

namespace ztape::replay {

// :authority (and host) become the target's, :scheme is http; headers that HTTP/2 forbids (RFC 9113, section 8.2.2) are
// left out; true binary metadata becomes base64. Everything else stays: user-agent, grpc-timeout, metadata.
http2::HeaderList request_headers(const http2::HeaderList& recorded, const std::string& authority);

}  // namespace ztape::replay
