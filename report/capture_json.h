// A capture as JSON, in the forms of `ztape show --json` (docs/cli.md). Each function returns one document as text.
#pragma once

#include <string>

#include "http2/recorded_connection.h"

namespace ztape::report {

// One object a line: a call.
std::string call_json(const http2::RecordedCapture& capture, const http2::RecordedConnection& connection,
                      const http2::Call& call);

// The same with `requests` and `responses`: every message decoded (message_json), in full.
std::string call_with_messages_json(const http2::RecordedCapture& capture, const http2::RecordedConnection& connection,
                                    const http2::Call& call);

// One object a line: a frame. Its time is that of its last byte.
std::string frame_json(const http2::RecordedConnection& connection, const http2::Frame& frame);

// The summary.
std::string capture_json(const http2::RecordedCapture& capture);

}  // namespace ztape::report
