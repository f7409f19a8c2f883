// `ztape proxy --route`, several times: one process, one capture.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "tests/support/child_process.h"
#include "tests/support/recorded_bytes.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

// Where the proxy listens, out of one of its first lines.
std::string address_in(const std::string& line) {
  const std::string begin = "listening on ";
  if (!line.starts_with(begin)) throw std::runtime_error("not a first line of a proxy: " + line);
  return line.substr(begin.size(), line.find(',') - begin.size());
}

TEST(Routes, EveryHopIsRelayedAndAllAreInOneCaptureOnOneClock) {
  const TemporaryDirectory folder;
  const auto file = folder.file("hops.ztape");
  ListeningSocket indexer, node;
  ChildProcess proxy({ztape(), "proxy", "--route", "127.0.0.1:0=http://" + indexer.address(), "--route",
                      "127.0.0.1:0=" + node.address(), "-w", file});
  EXPECT_NE(proxy.line(0).find(", upstream http://" + indexer.address() + ", recording to " + file), std::string::npos);
  EXPECT_NE(proxy.line(1).find(", upstream http://" + node.address() + ", recording to " + file), std::string::npos);
  const auto to_indexer = address_in(proxy.line(0)), to_node = address_in(proxy.line(1));

  // The wallet asks the indexer, which asks the node before it answers.
  auto wallet = Socket::connect(to_indexer);
  auto indexers_end = indexer.accept();
  wallet.send("a wallet's question");
  EXPECT_EQ(indexers_end.receive(19), "a wallet's question");
  auto indexers_client = Socket::connect(to_node);
  auto nodes_end = node.accept();
  indexers_client.send("the indexer's");
  EXPECT_EQ(nodes_end.receive(13), "the indexer's");
  nodes_end.send("block");
  EXPECT_EQ(indexers_client.receive(5), "block");
  indexers_end.send("compact block");
  EXPECT_EQ(wallet.receive(13), "compact block");
  proxy.signal(SIGTERM);
  EXPECT_EQ(proxy.wait(), 0);

  const auto traffic = read_traffic(file);
  ASSERT_EQ(traffic.connections.size(), 2u);
  const auto& first = traffic.connections.at(1);
  const auto& second = traffic.connections.at(2);
  EXPECT_EQ(first.open.downstream_local(), to_indexer);
  EXPECT_EQ(first.open.upstream_url(), "http://" + indexer.address());
  EXPECT_EQ(first.bytes[0], "a wallet's question");
  EXPECT_EQ(first.bytes[1], "compact block");
  EXPECT_EQ(second.open.downstream_local(), to_node);
  EXPECT_EQ(second.open.upstream_url(), "http://" + node.address());
  EXPECT_EQ(second.open.downstream_peer(), indexers_client.local_text());
  EXPECT_EQ(second.bytes[0], "the indexer's");
  EXPECT_EQ(second.bytes[1], "block");
  EXPECT_GT(second.open.time_ns(), first.open.time_ns());
  EXPECT_EQ(traffic.start.settings().at("route 1"), "127.0.0.1:0=http://" + indexer.address());
  EXPECT_FALSE(traffic.start.settings().contains("upstream"));
}

TEST(Routes, OneWhoseIndexerIsGoneLeavesTheOthersAlone) {
  const TemporaryDirectory folder;
  ListeningSocket there, gone;
  ChildProcess proxy({ztape(), "proxy", "--route", "127.0.0.1:0=" + there.address(), "--route",
                      "127.0.0.1:0=" + gone.address(), "-w", folder.file("a.ztape")});
  const auto good = address_in(proxy.line(0)), bad = address_in(proxy.line(1));
  gone.close();
  std::string error;
  Socket::connect(bad).receive_all(&error);
  EXPECT_EQ(error, "ECONNRESET");
  auto wallet = Socket::connect(good);
  auto server = there.accept();
  wallet.send("ask");
  EXPECT_EQ(server.receive(3), "ask");
  proxy.signal(SIGTERM);
  EXPECT_EQ(proxy.wait(), 3);
}

TEST(Routes, WordsThatMakeNoRouteAreOneLineAndStatus2) {
  const auto expect_refused = [](const std::vector<std::string>& words, const std::string& text) {
    std::vector<std::string> all{ztape(), "proxy", "-w", "/dev/null", "--force"};
    all.insert(all.end(), words.begin(), words.end());
    const auto ended = run(all);
    EXPECT_EQ(ended.status, 2);
    EXPECT_NE(ended.err.find(text), std::string::npos) << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  };
  expect_refused({"--route", "127.0.0.1:1"}, "is not LISTEN=URL");
  expect_refused({"--route", "=127.0.0.1:1"}, "is not LISTEN=URL");
  expect_refused({"--route", "127.0.0.1:0="}, "an empty address");
  expect_refused({"--route", "127.0.0.1:0=127.0.0.1:1", "--upstream", "127.0.0.1:1"}, "leave --upstream out");
  expect_refused({"--route", "127.0.0.1:0=127.0.0.1:1", "--listen", "127.0.0.1:0"}, "leave --listen out");
}

TEST(Routes, ACircleOfRoutesIsRefused) {
  // Free ports, by asking for them; nobody else is given them while they are in use here.
  std::string first, second;
  {
    const ListeningSocket a, b;
    first = a.address();
    second = b.address();
  }
  const TemporaryDirectory folder;
  const auto ended = run({ztape(), "proxy", "--route", first + "=" + second, "--route", second + "=" + first, "-w",
                          folder.file("a.ztape")});
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.err.find("is where this proxy itself listens"), std::string::npos) << ended.err;
}

TEST(Routes, TwoOnOnePortAreRefused) {
  std::string address;
  {
    const ListeningSocket free;
    address = free.address();
  }
  const TemporaryDirectory folder;
  const auto ended = run({ztape(), "proxy", "--route", address + "=127.0.0.1:1", "--route", address + "=127.0.0.1:2",
                          "-w", folder.file("a.ztape")});
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.err.find(address + ": address already in use"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace ztape::test
