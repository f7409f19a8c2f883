// What single scenarios show beside their output: memory, headers, compression, a dying server.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "tests/peer/peer_run.h"
#include "tests/peer/slow_path.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

// Over what an idle proxy has:
//   4 MiB   the recorder's queue, as given below;
//   2 MiB   a relay queue each way: the high-water mark of 512 KiB and one more read of at most a slab of 256 KiB;
//   4 MiB   the recorder's: the block it collects (512 KiB), its compressed form, zstd's state, the index;
// and half as much again for what malloc keeps of all this. Measured: 3 to 8 MiB; a relay that never stops reading: 29
// on the slow path.
constexpr uint64_t kBoundBytes = 16 * kMiB;
const std::vector<std::string> kBoundedQueue{"--when-disk-is-slow", "hold", "--queue-bytes", "4M"};

void expect_bounded(uint64_t at_start, uint64_t peak) {
  std::printf("proxy: %.1f MiB at the start, %.1f MiB at most\n", static_cast<double>(at_start) / kMiB,
              static_cast<double>(peak) / kMiB);
  if (kSanitized) return;  // a sanitizer's own memory is not ours to bound
  EXPECT_LT(peak - at_start, kBoundBytes);
}

TEST(PeerThroughProxy, ASlowReaderOf64MiBTakesBoundedMemory) {
  const TemporaryDirectory directory;
  const auto path = directory.file("slow.ztape");
  PeerServer server;
  const auto direct = run_client(server.address(), "slow_reader");
  ASSERT_EQ(direct.status, 0) << direct.err;
  ProxyProcess proxy(server.address(), path, kBoundedQueue);
  const auto at_start = proxy.peak_resident_bytes();
  const auto through = run_client(proxy.address(), "slow_reader");
  expect_bounded(at_start, proxy.peak_resident_bytes());
  EXPECT_EQ(through.out, direct.out);
  EXPECT_EQ(proxy.stop(), 0);
  EXPECT_EQ(recorded_lines(read_recording(path)), expected_lines(direct.out));
}

// In the test above HTTP/2's windows hold the server back. Here they are open for all 64 MiB, and a slow path between
// client and proxy makes TCP fill up: the proxy has to pass that on.
TEST(PeerThroughProxy, ASlowPathFor64MiBTakesBoundedMemory) {
  const TemporaryDirectory directory;
  const auto path = directory.file("path.ztape");
  PeerServer server;
  const auto direct = run_client(server.address(), "huge_message");
  ASSERT_EQ(direct.status, 0) << direct.err;
  ProxyProcess proxy(server.address(), path, kBoundedQueue);
  const auto at_start = proxy.peak_resident_bytes();
  SlowPath slow(proxy.address());
  const auto through = run_client(slow.address(), "huge_message");
  expect_bounded(at_start, proxy.peak_resident_bytes());
  EXPECT_EQ(through.out, direct.out);
  EXPECT_EQ(proxy.stop(), 0);
  EXPECT_EQ(recorded_lines(read_recording(path)), expected_lines(direct.out));
}

TEST(PeerThroughProxy, LargeMetadataIsRecordedInEveryHeaderBlock) {
  const TemporaryDirectory directory;
  const auto path = directory.file("metadata.ztape");
  PeerServer server({"--max-frame-bytes", "16384"});
  ProxyProcess proxy(server.address(), path);
  ASSERT_EQ(run_client(proxy.address(), "large_metadata").status, 0);
  EXPECT_EQ(proxy.stop(), 0);

  const auto recording = read_recording(path);
  ASSERT_EQ(recording.connections.size(), 1u);
  const auto& connection = recording.connections[0];
  std::size_t calls_with_40 = 0;
  for (const auto& call : connection.calls) {
    const auto* asked = http2::find_header(call.request_headers, "x-peer-echo-39");
    if (asked == nullptr) continue;
    ++calls_with_40;
    EXPECT_EQ(asked->size(), 1024u);
    const auto& headers = call.trailers_only ? call.trailers : call.response_headers;
    const auto* header = http2::find_header(headers, "x-peer-echo-39");
    const auto* trailer = http2::find_header(call.trailers, "x-peer-trailer-39");
    ASSERT_NE(header, nullptr) << call.path;
    ASSERT_NE(trailer, nullptr) << call.path;
    EXPECT_EQ(*header, *asked);
    EXPECT_EQ(*trailer, *asked);
  }
  EXPECT_EQ(calls_with_40, 3u);

  std::array<int, 2> continuations{};
  for (const auto& frame : connection.frames) {
    if (frame.type == http2::kContinuation) ++continuations[index(frame.direction)];
  }
  EXPECT_GT(continuations[index(Direction::client_to_server)], 0);
  EXPECT_GT(continuations[index(Direction::server_to_client)], 0);
}

TEST(PeerThroughProxy, CompressedMessagesAreRecordedAsTheyCrossed) {
  const TemporaryDirectory directory;
  const auto path = directory.file("gzip.ztape");
  PeerServer server;
  ProxyProcess proxy(server.address(), path);
  ASSERT_EQ(run_client(proxy.address(), "gzip").status, 0);
  EXPECT_EQ(proxy.stop(), 0);

  const auto recording = read_recording(path);
  ASSERT_EQ(recording.connections.size(), 1u);
  const auto& calls = recording.connections[0].calls;
  ASSERT_EQ(calls.size(), 6u);
  const auto compressed = [](const std::vector<http2::Message>& messages) {
    return std::ranges::any_of(messages, [](const auto& m) { return m.compressed && m.length < m.body.size(); });
  };
  EXPECT_TRUE(compressed(calls[0].requests));   // 500 addresses
  EXPECT_TRUE(compressed(calls[1].responses));  // a tree state
  EXPECT_TRUE(compressed(calls[4].requests));
  EXPECT_FALSE(compressed(calls[4].responses));
  EXPECT_FALSE(compressed(calls[5].requests));
  EXPECT_TRUE(compressed(calls[5].responses));
}

TEST(PeerThroughProxy, IPv6OnBothSides) {
  const TemporaryDirectory directory;
  const auto path = directory.file("ipv6.ztape");
  PeerServer server({"--listen", "[::1]:0"});
  const auto direct = run_client(server.address(), "session");
  ProxyProcess proxy(server.address(), path, {}, "[::1]:0");
  const auto through = run_client(proxy.address(), "session");
  EXPECT_EQ(through.out, direct.out);
  EXPECT_EQ(proxy.stop(), 0);
  EXPECT_EQ(recorded_lines(read_recording(path)), expected_lines(direct.out));
}

// The path, the digests and the status of each call; the text of a lost connection names ports.
std::vector<std::string> without_texts(const std::string& output) {
  auto lines = call_lines(output);
  for (auto& line : lines) line.resize(line.find('"'));
  return lines;
}

TEST(PeerThroughProxy, AServerThatDiesLooksTheSame) {
  const TemporaryDirectory directory;
  const auto path = directory.file("dead.ztape");
  PeerServer first({"--die-after", "8"});
  const auto direct = run_client(first.address(), "session");
  PeerServer second({"--die-after", "8"});
  ProxyProcess proxy(second.address(), path);
  const auto through = run_client(proxy.address(), "session");
  EXPECT_EQ(without_texts(through.out), without_texts(direct.out));
  // Whether the client comes again once the server is gone is a race of grpc++'s own. When it does, it cannot be
  // served, and the proxy says so.
  const int status = proxy.stop();
  const bool came_again = proxy.output().find("not connected upstream") != std::string::npos;
  EXPECT_EQ(status, came_again ? 3 : 0);

  // The first connection has the 8 calls that were answered and the one that was not; later ones never got upstream.
  auto expected = expected_lines(direct.out);
  expected.resize(9);
  EXPECT_TRUE(expected.back().ends_with("connection lost"));
  EXPECT_EQ(recorded_lines(read_recording(path)), expected);
}

TEST(Peers, AChangedServerDiffersInTheOnePlaceNamed) {
  PeerServer same;
  PeerServer changed({"--change", "CompactBlock.time@3", "--change-at-height", "1015"});
  const auto right = call_lines(run_client(same.address(), "session").out);
  const auto wrong = call_lines(run_client(changed.address(), "session").out);
  ASSERT_EQ(right.size(), wrong.size());
  std::vector<std::size_t> different;
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (right[i] != wrong[i]) different.push_back(i);
  }
  // The range of 1000 to 1099 has the third block and that of height 1015, which comes again by GetBlock.
  EXPECT_EQ(different, (std::vector<std::size_t>{5, 15}));
}

}  // namespace
}  // namespace ztape::test
