#include "tests/serve/recorded.h"

#include "tests/support/frames.h"

namespace ztape::test {

std::vector<http2::Call> calls_with_bodies(const FixtureConnection& connection) {
  http2::CallBuilderOptions options;
  options.keep_bodies = true;
  options.keep_frames = true;
  return read_calls(pieces_of(connection), options);
}

http2::RecordedCapture recorded_fixture(const std::string& name) {
  http2::RecordedCapture capture;
  capture.file = name;
  for (const auto& connection : load_fixture(name)) {
    http2::RecordedConnection recorded;
    recorded.id = static_cast<ConnectionId>(connection.number);
    recorded.calls = calls_with_bodies(connection);
    for (auto& call : recorded.calls) call.connection = recorded.id;
    capture.connections.push_back(std::move(recorded));
  }
  return capture;
}

replay::Answer answer(const std::string& method, const std::string& request, const std::vector<std::string>& messages,
                      int64_t start_ns) {
  replay::Answer made;
  made.path = path_of(method);
  made.requests = {request};
  made.start_ns = start_ns;
  made.request_ns = {start_ns + 1000};
  made.request_end_ns = start_ns + 1000;
  made.headers = grpc_response();
  made.headers_ns = start_ns + 2000;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto length = static_cast<uint32_t>(replay::kMessagePrefixBytes + messages[i].size());
    made.messages.push_back({messages[i], {{static_cast<uint32_t>(i), length}}});
    made.frame_ns.push_back(start_ns + 3000 + static_cast<int64_t>(i) * 1000);
  }
  made.trailers = grpc_trailers(0);
  made.trailers_ns = start_ns + 3000 + static_cast<int64_t>(messages.size()) * 1000;
  made.end_ns = made.trailers_ns;
  return made;
}

std::string path_of(const std::string& method) {
  return "/cash.z.wallet.sdk.rpc.CompactTxStreamer/" + method;
}

}  // namespace ztape::test
