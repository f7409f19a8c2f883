// What the recorder writes down of the sockets and of itself while bytes move.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/support/proxy_process.h"
#include "tests/support/recorded_bytes.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

TEST(ProxySamples, AConnectionThatMovesIsSampledEverySecondAndAnIdleOneIsNot) {
  const TemporaryDirectory folder;
  const auto capture = folder.file("a.ztape");
  ListeningSocket listener;
  ProxyProcess proxy(listener.address(), capture);
  auto client = Socket::connect(proxy.address());
  auto server = listener.accept();
  auto idle_client = Socket::connect(proxy.address());
  auto idle_server = listener.accept();
  idle_client.send("once");
  EXPECT_EQ(idle_server.receive(4), "once");

  // Bytes go to and fro until two intervals are in the file.
  const auto until = std::chrono::steady_clock::now() + kPatience;
  RecordedTraffic traffic;
  constexpr std::size_t kAtOpen = 2;
  constexpr std::size_t kWithTwoIntervals = kAtOpen + 4;
  while (traffic.connections[1].tcp_infos.size() < kWithTwoIntervals && std::chrono::steady_clock::now() < until) {
    for (int i = 0; i < 20; ++i) {
      client.send("ping");
      ASSERT_EQ(server.receive(4), "ping");
      server.send("pong");
      ASSERT_EQ(client.receive(4), "pong");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // so that the file stays small
    }
    traffic = read_traffic(capture);
  }
  ASSERT_GE(traffic.connections[1].tcp_infos.size(), kWithTwoIntervals);
  const auto& samples = traffic.connections[1].tcp_infos;
  for (std::size_t i = kAtOpen; i < samples.size(); i += 2) {
    EXPECT_NE(samples[i].side(), samples[i + 1].side());
    EXPECT_GT(samples[i].rtt_us(), 0u);
    EXPECT_GT(samples[i].snd_mss(), 0u);
    EXPECT_GT(samples[i].snd_cwnd(), 0u);
    EXPECT_GT(samples[i].bytes_received(), samples[i - 2].bytes_received());
  }
  // Its four bytes moved in the first interval; in none after it.
  EXPECT_EQ(traffic.connections[2].tcp_infos.size(), kAtOpen + 2);

  ASSERT_GE(traffic.loop_lags.size(), 2u);
  for (const auto& lag : traffic.loop_lags) {
    EXPECT_GT(lag.turns(), 0u);
    EXPECT_GT(lag.max_ns(), 0);
    uint64_t turns = 0;
    for (const auto bucket : lag.bucket_turns()) turns += bucket;
    EXPECT_EQ(turns, lag.turns());
    EXPECT_EQ(lag.bucket_top_ns(lag.bucket_top_ns_size() - 1), lag.max_ns());
  }
  EXPECT_EQ(proxy.stop(), 0);
  const auto shown = run({ztape(), "show", "-r", capture});
  EXPECT_NE(shown.out.find("\nevent loop lag: max "), std::string::npos) << shown.out;
}

}  // namespace
}  // namespace ztape::test
