// What a capture says of TLS, for people: which versions, protocols and names on each side, and how they verified.
#pragma once

#include <string>

#include "http2/recorded_connection.h"

namespace ztape::report {

// A line for each kind of TLS connection there was; "" where all was plaintext.
std::string tls_lines(const http2::RecordedCapture& capture);

}  // namespace ztape::report
