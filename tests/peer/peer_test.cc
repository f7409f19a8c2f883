// A grpc++ client and server see no difference whether ztape's proxy is between them, and the recording has every call.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/peer/peer_run.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

void expect_whole(const http2::RecordedCapture& capture, const std::string& path) {
  EXPECT_TRUE(capture.damage.empty());
  EXPECT_TRUE(capture.gaps.empty());
  for (const auto& connection : capture.connections) {
    EXPECT_TRUE(connection.unreadable.empty()) << connection.unreadable.front().reason;
    EXPECT_EQ(connection.gap_bytes, 0u);
    EXPECT_GE(connection.close_ns, 0);
    for (const auto& call : connection.calls) EXPECT_EQ(call.unreadable_reason, "");
  }
  const auto verified = run({ztape(), "verify", "-r", path});
  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
}

class Scenario : public testing::TestWithParam<std::string> {};

TEST_P(Scenario, IsTheSameThroughTheProxyAndRecordedWhole) {
  const TemporaryDirectory directory;
  const auto path = directory.file("peer.ztape");
  PeerServer server;
  const auto direct = run_client(server.address(), GetParam());
  ASSERT_EQ(direct.status, 0) << direct.err;
  ASSERT_FALSE(direct.out.empty());

  // The disk of a test machine may be slow; what is asked here is that nothing is missing.
  ProxyProcess proxy(server.address(), path, {"--when-disk-is-slow", "hold"});
  const auto through = run_client(proxy.address(), GetParam());
  EXPECT_EQ(through.status, 0) << through.err;
  EXPECT_EQ(through.out, direct.out);
  EXPECT_EQ(proxy.stop(), 0);
  EXPECT_EQ(server.stop(), 0);

  const auto recording = read_recording(path);
  expect_whole(recording, path);
  auto expected = expected_lines(direct.out);
  auto recorded = recorded_lines(recording);
  if (recording.connections.size() > 1) {  // several threads: in no order
    std::ranges::sort(expected);
    std::ranges::sort(recorded);
  }
  EXPECT_EQ(recorded, expected);
}

INSTANTIATE_TEST_SUITE_P(Peer, Scenario,
                         testing::Values("unary", "session", "server_stream", "client_stream", "bidi", "many_messages",
                                         "parallel", "cancel", "deadline", "error_before", "error_middle",
                                         "large_metadata", "gzip"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace ztape::test
