// `ztape proxy` with many connections, and with fewer file descriptors than they would need.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <iostream>
#include <thread>

#include "tests/support/frames.h"
#include "tests/support/proxy_process.h"
#include "tests/support/recorded_bytes.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

// Sets `ulimit -n`, soft and hard, for what follows, and closes what whoever runs the tests may have left open.
std::vector<std::string> with_descriptors(int limit) {
  return {"sh", "-c", "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n " + std::to_string(limit) + "; exec \"$@\"",
          "sh"};
}

// The test needs two descriptors a connection itself. Returns false where the machine has too few.
bool raise_own_limit(rlim_t wanted) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_max >= wanted;
}

struct Pair {
  Socket wallet, server;
};

std::string question(std::size_t number) {
  return "question " + std::to_string(number);
}

std::string answer(std::size_t number) {
  return "the answer to " + std::to_string(number);
}

// One exchange, and which connection of the capture it must be in.
void exchange(Pair& pair, std::size_t number) {
  pair.wallet.send(question(number));
  ASSERT_EQ(pair.server.receive(question(number).size()), question(number));
  pair.server.send(answer(number));
  ASSERT_EQ(pair.wallet.receive(answer(number).size()), answer(number));
}

TEST(ManyConnections, TwoThousandWalletsAtOnceAreAllRelayedAndRecorded) {
  constexpr std::size_t kWallets = 2000;
  if (!raise_own_limit(2 * kWallets + 100)) GTEST_SKIP() << "the hard limit of file descriptors is too low";
  const TemporaryDirectory folder;
  const auto file = folder.file("many.ztape");
  ListeningSocket server;
  ProxyProcess proxy(server.address(), file, {}, with_descriptors(2 * kWallets + 100));
  const auto before = proxy.process().resident_bytes();
  std::vector<Pair> pairs(kWallets);
  for (auto& pair : pairs) {
    pair.wallet = Socket::connect(proxy.address());
    pair.server = server.accept();
  }
  const auto idle = proxy.process().resident_bytes();
  std::cout << "resident memory a connection that was only opened: " << (idle - before) / kWallets << " bytes\n";
  for (std::size_t i = 0; i < kWallets; ++i) exchange(pairs[i], i);
  const auto used = proxy.process().resident_bytes();
  std::cout << "resident memory a connection after an exchange: " << (used - before) / kWallets << " bytes\n";
  EXPECT_LT(used - before, kWallets * 40 * 1024);
  for (std::size_t i = kWallets; i-- > 0;) exchange(pairs[i], i);
  std::vector<std::string> wallets;
  for (const auto& pair : pairs) wallets.push_back(pair.wallet.local_text());
  pairs.clear();
  EXPECT_EQ(proxy.stop(), 0) << proxy.process().stderr_text();
  EXPECT_EQ(proxy.process().stderr_text().find("descriptors"), std::string::npos);

  const auto traffic = read_traffic(file);
  EXPECT_TRUE(traffic.whole);
  ASSERT_EQ(traffic.connections.size(), kWallets);
  for (std::size_t i = 0; i < kWallets; ++i) {
    const auto& connection = traffic.connections.at(i + 1);
    EXPECT_EQ(connection.open.downstream_peer(), wallets[i]);
    EXPECT_EQ(connection.bytes[0], question(i) + question(i));
    EXPECT_EQ(connection.bytes[1], answer(i) + answer(i));
    EXPECT_TRUE(connection.closed);
  }
}

TEST(ManyConnections, AnIdleWalletThatHasSpokenCostsLittle) {
  constexpr std::size_t kWallets = 500;
  if (!raise_own_limit(3 * kWallets + 100)) GTEST_SKIP() << "the hard limit of file descriptors is too low";
  const TemporaryDirectory folder;
  ListeningSocket server;
  ProxyProcess proxy(server.address(), folder.file("idle.ztape"), {}, with_descriptors(3 * kWallets + 100));
  const std::string path = "/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetLatestBlock";
  const auto open = [&](Pair& pair) {
    HeaderEncoder of_wallet, of_server;
    const auto asked = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings({}) +
                       of_wallet.headers(1, grpc_request(path), false) + data(1, message(""), true);
    const auto answered = settings({}) + settings_ack() + of_server.headers(1, grpc_response(), false) +
                          data(1, message("block"), false) + of_server.headers(1, grpc_trailers(0), true);
    pair.wallet = Socket::connect(proxy.address());
    pair.server = server.accept();
    pair.wallet.send(asked);
    ASSERT_EQ(pair.server.receive(asked.size()), asked);
    pair.server.send(answered);
    ASSERT_EQ(pair.wallet.receive(answered.size()), answered);
  };
  std::vector<Pair> pairs(2 * kWallets);
  for (std::size_t i = 0; i < kWallets; ++i) open(pairs[i]);  // buffers of the whole have their size now
  const auto before = proxy.process().resident_bytes();
  for (std::size_t i = 0; i < kWallets / 2; ++i) open(pairs[kWallets + i]);
  const auto each = (proxy.process().resident_bytes() - before) / (kWallets / 2);
  std::cout << "resident memory a wallet that has made a call: " << each << " bytes\n";
  EXPECT_LT(each, 40u * 1024);
  pairs.clear();
  EXPECT_EQ(proxy.stop(), 0) << proxy.process().stderr_text();
}

TEST(ManyConnections, TenThousandOneAfterAnotherLeaveNothingBehind) {
  constexpr std::size_t kConnections = 10'000;
  const TemporaryDirectory folder;
  const auto file = folder.file("sequence.ztape");
  ListeningSocket server;
  ProxyProcess proxy(server.address(), file, {}, with_descriptors(64));
  uint64_t early = 0;
  for (std::size_t i = 0; i < kConnections; ++i) {
    Pair pair;
    pair.wallet = Socket::connect(proxy.address());
    pair.server = server.accept();
    pair.wallet.send("x");
    ASSERT_EQ(pair.server.receive(1), "x");
    // An RST leaves no TIME_WAIT behind: 20,000 of those are nearly all the ports there are.
    pair.wallet.reset();
    pair.server.reset();
    if (i == kConnections / 10) early = proxy.process().resident_bytes();
  }
  EXPECT_LT(proxy.process().resident_bytes(), early + (8u << 20));
  EXPECT_EQ(proxy.stop(), 0) << proxy.process().stderr_text();
  const auto traffic = read_traffic(file);
  EXPECT_TRUE(traffic.whole);
  EXPECT_EQ(traffic.connections.size(), kConnections);
  const auto is_whole = [](const auto& row) { return row.second.bytes[0] == "x" && row.second.closed; };
  EXPECT_TRUE(std::ranges::all_of(traffic.connections, is_whole));
}

TEST(ManyConnections, AboveTheDescriptorLimitTheyWaitAndAreServedLater) {
  const TemporaryDirectory folder;
  const auto file = folder.file("few.ztape");
  ListeningSocket server;
  ProxyProcess proxy(server.address(), file, {}, with_descriptors(64));
  // The kernel takes all of them for the proxy; each has asked before the proxy could have taken it.
  constexpr std::size_t kWallets = 100;
  std::vector<Socket> wallets;
  for (std::size_t i = 0; i < kWallets; ++i) {
    wallets.push_back(Socket::connect(proxy.address()));
    wallets.back().send(question(i));
  }
  proxy.process().wait_for_stderr("nearly out of file descriptors");
  for (std::size_t i = 0; i < kWallets; ++i) {
    auto end = server.accept();
    ASSERT_EQ(end.receive(question(i).size()), question(i));
    end.send(answer(i));
    ASSERT_EQ(wallets[i].receive(answer(i).size()), answer(i));
    wallets[i].reset();  // makes room for the next
  }
  EXPECT_EQ(proxy.stop(), 0) << proxy.process().stderr_text();
  const auto log = proxy.process().stderr_text();
  EXPECT_EQ(log.find("nearly out of"), log.rfind("nearly out of")) << "said once";
  EXPECT_NE(proxy.process().stdout_text().find("waited for file descriptors: "), std::string::npos);
  const auto traffic = read_traffic(file);
  ASSERT_EQ(traffic.connections.size(), kWallets);
  for (std::size_t i = 0; i < kWallets; ++i) {
    EXPECT_EQ(traffic.connections.at(i + 1).bytes[0], question(i));
    EXPECT_EQ(traffic.connections.at(i + 1).bytes[1], answer(i));
  }
}

TEST(ManyConnections, TheSoftLimitIsRaisedToTheHardOne) {
  const TemporaryDirectory folder;
  ListeningSocket server;
  ProxyProcess proxy(server.address(), folder.file("a.ztape"), {},
                     {"sh", "-c", "ulimit -Sn 32; ulimit -Hn 200; exec \"$@\"", "sh"});
  std::vector<Pair> pairs(40);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].wallet = Socket::connect(proxy.address());
    pairs[i].server = server.accept();
    exchange(pairs[i], i);
  }
  EXPECT_EQ(proxy.process().stderr_text().find("descriptors"), std::string::npos);
  EXPECT_EQ(proxy.stop(), 0);
}

TEST(ManyConnections, TooFewDescriptorsToStartIsOneLine) {
  const TemporaryDirectory folder;
  for (const int limit : {4, 5, 6, 8, 10, 12, 16, 20}) {
    auto words = with_descriptors(limit);
    words.insert(words.end(), {ztape(), "proxy", "--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "-w",
                               folder.file(std::to_string(limit) + ".ztape")});
    const auto ended = run(words);
    EXPECT_EQ(ended.status, 2) << limit << ": " << ended.err;
    EXPECT_NE(ended.err.find("ulimit -n"), std::string::npos) << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  }
}

}  // namespace
}  // namespace ztape::test
