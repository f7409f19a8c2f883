// A capture as a page for a person: `ztape show`.
#pragma once

#include <string>

#include "http2/recorded_connection.h"

namespace ztape::report {

// What is in it at a glance: connections, calls per method, silence, and everything that is missing.
std::string capture_page(const http2::RecordedCapture& capture);

// A call a line, under the head of calls_head().
std::string calls_page(const http2::RecordedCapture& capture);

// A frame a line.
std::string frames_page(const http2::RecordedConnection& connection, const std::vector<http2::Frame>& frames);

// How one call ended, in a word or two: "OK", "NOT_FOUND", "client reset CANCEL".
std::string outcome(const http2::Call& call);

// "OK", "NOT_FOUND"; "status 99" for a number gRPC does not have.
std::string grpc_status_name(int status);

}  // namespace ztape::report
