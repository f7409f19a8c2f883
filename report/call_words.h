// The words that pages and JSON have for a call and for what its connection speaks.
#pragma once

#include <string>
#include <vector>

#include "http2/recorded_connection.h"

namespace ztape::report {

// "GetBlock", "getblockchaininfo" of JSON-RPC, "GET /index.html" of other HTTP. Not made safe to show.
std::string method_name(const http2::Call& call);

// The methods that a JSON-RPC request calls, in order (more than one: a batch); empty: it is none. `beginning` may be
// cut anywhere.
std::vector<std::string> json_rpc_methods(const std::string& beginning);

// How a call ended, in a word or two: "OK", "NOT_FOUND", "client reset CANCEL", "HTTP 502 text/html".
std::string outcome(const http2::Call& call);

// The content of all bodies of one direction: messages, or what else was there.
uint64_t content_bytes(const http2::Call& call, Direction direction);

std::string grpc_status_name(int status);

// What a connection speaks, in a word or two: "gRPC", "HTTP/1.1", "TLS", "not HTTP".
std::string protocol_word(const http2::RecordedConnection& connection);

// What a person has to know of a connection that is not HTTP/2 with gRPC; "" of one that is. Made safe to show.
std::string protocol_note(const http2::RecordedConnection& connection);

// "127.0.0.1:9167 -> http://127.0.0.1:8137"; "" where the capture does not say.
std::string route(const capture::ConnectionOpen& open);

}  // namespace ztape::report
