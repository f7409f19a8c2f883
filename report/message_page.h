// A call with its messages for a person: `ztape show --messages`.
#pragma once

#include <string>

#include "http2/recorded_connection.h"

namespace ztape::report {

// A line of the call, and below it one of each message: "> " what the wallet sent, "< " what it got. Lines are cut to
// `width` columns; 0: at some 1,000 characters.
std::string call_with_messages(const http2::RecordedConnection& connection, const http2::Call& call, std::size_t width);

}  // namespace ztape::report
