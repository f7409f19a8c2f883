#include "tests/replay/recorded.h"

#include "tests/support/calls.h"
#include "tests/support/fixture.h"

namespace ztape::test {
namespace {

http2::Message message(const std::string& body, int64_t time_ns) {
  http2::Message made;
  made.first_byte_ns = made.last_byte_ns = time_ns;
  made.length = static_cast<uint32_t>(body.size());
  made.body = body;
  return made;
}

http2::Call begin_call(uint32_t stream, const std::string& method, int64_t start_ns, const std::string& request) {
  http2::Call call;
  call.stream = stream;
  call.path = "/cash.z.wallet.sdk.rpc.CompactTxStreamer/" + method;
  call.request_headers = {{":method", "POST"},          {":scheme", "http"}, {":path", call.path},
                          {":authority", "recorded:1"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
  call.response_headers = {{":status", "200"}, {"content-type", "application/grpc"}};
  call.start_ns = call.request_end_ns = start_ns;
  call.http_status = 200;
  call.requests.push_back(message(request, start_ns));
  call.request_message_count = 1;
  call.request_bytes = request.size();
  return call;
}

void end_call(http2::Call& call, int64_t end_ns) {
  call.trailers = {{"grpc-status", "0"}};
  call.grpc_status = 0;
  call.end_ns = end_ns;
  call.ended_by = http2::EndedBy::trailers;
}

}  // namespace

std::vector<http2::RecordedConnection> recorded_fixture(const std::string& name) {
  std::vector<http2::RecordedConnection> connections;
  for (const auto& fixture : load_fixture(name)) {
    http2::RecordedConnection connection;
    connection.id = static_cast<ConnectionId>(fixture.number);
    connection.close_ns = fixture.close_ns;
    const auto pieces = pieces_of(fixture);
    connection.calls = read_calls(pieces, {.keep_bodies = true});
    connections.push_back(std::move(connection));
  }
  return connections;
}

http2::Call unary_call(uint32_t stream, const std::string& method, int64_t start_ns, int64_t end_ns,
                       const std::string& request, const std::string& response) {
  auto call = begin_call(stream, method, start_ns, request);
  call.first_byte_ns = end_ns;
  call.responses.push_back(message(response, end_ns));
  call.response_message_count = 1;
  call.response_bytes = response.size();
  end_call(call, end_ns);
  return call;
}

http2::Call stream_call(uint32_t stream, const std::string& method, int64_t start_ns,
                        const std::vector<int64_t>& message_ns, int64_t end_ns) {
  auto call = begin_call(stream, method, start_ns, "");
  call.first_byte_ns = message_ns.empty() ? end_ns : message_ns.front();
  for (const auto time_ns : message_ns) {
    call.responses.push_back(message("m" + std::to_string(call.responses.size()), time_ns));
    ++call.response_message_count;
    call.response_bytes += call.responses.back().length;
  }
  end_call(call, end_ns);
  return call;
}

http2::RecordedConnection connection_of(std::vector<http2::Call> calls) {
  http2::RecordedConnection connection;
  connection.id = 1;
  connection.calls = std::move(calls);
  for (const auto& call : connection.calls) connection.close_ns = std::max(connection.close_ns, call.end_ns);
  return connection;
}

}  // namespace ztape::test
