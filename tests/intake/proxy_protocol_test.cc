// `ztape proxy --proxy-protocol` behind a balancer: headers by hand, and by haproxy where it is installed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/support/proxy_process.h"
#include "tests/support/recorded_bytes.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const std::string kHeader = "PROXY TCP4 192.0.2.1 10.0.0.1 50000 9067\r\n";

class BehindABalancer : public testing::Test {
 protected:
  void start(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"--proxy-protocol"};
    words.insert(words.end(), more.begin(), more.end());
    proxy_ = std::make_unique<ProxyProcess>(server_.address(), file_, words);
  }

  TemporaryDirectory folder_;
  std::string file_ = folder_.file("a.ztape");
  ListeningSocket server_;
  std::unique_ptr<ProxyProcess> proxy_;
};

TEST_F(BehindABalancer, TheWalletIsWhoTheHeaderSaysAndTheHeaderIsNeitherForwardedNorRecorded) {
  start();
  auto balancer = Socket::connect(proxy_->address());
  const auto balancers = balancer.local_text();
  balancer.send(kHeader + kPreface);
  auto end = server_.accept();
  EXPECT_EQ(end.receive(kPreface.size()), kPreface);
  end.send("answer");
  EXPECT_EQ(balancer.receive(6), "answer");
  balancer.close();
  EXPECT_EQ(end.receive_all(), "");
  end.close();
  EXPECT_EQ(proxy_->stop(), 0) << proxy_->process().stderr_text();
  const auto connection = read_traffic(file_).connections.at(1);
  EXPECT_EQ(connection.open.downstream_peer(), "192.0.2.1:50000");
  EXPECT_EQ(connection.open.downstream_balancer(), balancers);
  EXPECT_EQ(connection.bytes[0], kPreface);
  EXPECT_EQ(connection.bytes[1], "answer");
  const auto calls = run({ztape(), "show", "-r", file_, "--json"});
  EXPECT_NE(calls.out.find("192.0.2.1:50000"), std::string::npos) << calls.out;
}

TEST_F(BehindABalancer, AHeaderMayComeInPieces) {
  start();
  auto balancer = Socket::connect(proxy_->address());
  balancer.set_nodelay();
  for (const char byte : kHeader + "x") balancer.send(std::string(1, byte));
  auto end = server_.accept();
  EXPECT_EQ(end.receive(1), "x");
  balancer.send("y");
  EXPECT_EQ(end.receive(1), "y");
  balancer.close();
  EXPECT_EQ(end.receive_all(), "");
  end.close();
  EXPECT_EQ(proxy_->stop(), 0);
  const auto connection = read_traffic(file_).connections.at(1);
  EXPECT_EQ(connection.open.downstream_peer(), "192.0.2.1:50000");
  EXPECT_EQ(connection.bytes[0], "xy");
}

TEST_F(BehindABalancer, AServerThatSpeaksFirstIsHeardAfterTheHeaderAlone) {
  start();
  auto balancer = Socket::connect(proxy_->address());
  balancer.send(kHeader);
  auto end = server_.accept();
  end.send("hello");
  EXPECT_EQ(balancer.receive(5), "hello");
}

TEST_F(BehindABalancer, AHealthCheckKeepsTheBalancersOwnAddress) {
  start();
  auto balancer = Socket::connect(proxy_->address());
  const auto own = balancer.local_text();
  balancer.send(std::string("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", 16) + "x");
  auto end = server_.accept();
  EXPECT_EQ(end.receive(1), "x");
  balancer.close();
  end.close();
  EXPECT_EQ(proxy_->stop(), 0);
  const auto connection = read_traffic(file_).connections.at(1);
  EXPECT_EQ(connection.open.downstream_peer(), own);
  EXPECT_EQ(connection.open.downstream_balancer(), "");
}

TEST_F(BehindABalancer, WithoutAProperHeaderAConnectionIsClosedToldAndCounted) {
  start();
  for (const std::string& bytes : {kPreface, "PROXY TCP4 192.0.2.1 10.0.0.1 50000 90670\r\n" + kPreface}) {
    auto wallet = Socket::connect(proxy_->address());
    wallet.send(bytes);
    std::string error;
    EXPECT_EQ(wallet.receive_all(&error), "");
    EXPECT_EQ(error, "ECONNRESET");
    proxy_->process().wait_for_stderr("a connection from " + wallet.local_text() + " is closed: ");
  }
  {
    auto wallet = Socket::connect(proxy_->address());
    wallet.send(kHeader.substr(0, 20));
    wallet.shutdown_write();
    std::string error;
    EXPECT_EQ(wallet.receive_all(&error), "");
  }
  {  // Only a look whether we are there.
    auto check = Socket::connect(proxy_->address());
    check.shutdown_write();
    std::string error;
    check.receive_all(&error);
  }
  auto balancer = Socket::connect(proxy_->address());
  balancer.send(kHeader + "x");
  auto end = server_.accept();
  EXPECT_EQ(end.receive(1), "x");
  EXPECT_EQ(proxy_->stop(), 0);
  EXPECT_NE(proxy_->process().stderr_text().find("no PROXY header, it begins with 'PRI'"), std::string::npos);
  EXPECT_NE(proxy_->process().stdout_text().find("closed for want of a PROXY header: 3 connections"), std::string::npos)
      << proxy_->process().stdout_text();
  EXPECT_EQ(read_traffic(file_).connections.size(), 1u);
}

TEST_F(BehindABalancer, AFloodOfBadOnesIsNotAFloodOfLines) {
  start();
  for (int i = 0; i < 50; ++i) {
    auto scanner = Socket::connect(proxy_->address());
    scanner.send("GET / HTTP/1.1\r\n\r\n");
    std::string error;
    scanner.receive_all(&error);
  }
  EXPECT_EQ(proxy_->stop(), 0);
  const auto log = proxy_->process().stderr_text();
  EXPECT_LT(std::count(log.begin(), log.end(), '\n'), 15) << log;
  EXPECT_NE(proxy_->process().stdout_text().find("closed for want of a PROXY header: 50 connections"),
            std::string::npos);
}

TEST_F(BehindABalancer, WhoHasNotSentItsHeaderYetDoesNotKeepTheProxyFromEnding) {
  start();
  auto balancer = Socket::connect(proxy_->address());
  balancer.send("PROXY ");
  EXPECT_EQ(proxy_->stop(), 0);
}

TEST_F(BehindABalancer, HaproxySendsBothVersions) {
  if (std::system("command -v haproxy >/dev/null") != 0) GTEST_SKIP() << "haproxy is not installed";
  start();
  std::vector<std::string> expected;
  for (const std::string version : {"send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options unique-id,crc32c"}) {
    // A port that is free now; nobody else asks for it meanwhile.
    std::string front;
    {
      const ListeningSocket free;
      front = free.address();
    }
    const auto settings = folder_.file("haproxy.cfg");
    std::ofstream(settings)
        << "defaults\n  mode tcp\n  timeout connect 10s\n  timeout client 60s\n  timeout server 60s\n"
        << "listen l\n  bind " << front << "\n  server s " << proxy_->address() << " " << version << "\n";
    ChildProcess haproxy({"haproxy", "-db", "-f", settings});
    Socket wallet;
    for (const auto give_up = std::chrono::steady_clock::now() + kPatience; !wallet.open();) {
      try {
        wallet = Socket::connect(front);
      } catch (const std::runtime_error&) {
        if (std::chrono::steady_clock::now() > give_up) throw;
        std::this_thread::yield();
      }
    }
    wallet.send(kPreface);
    auto end = server_.accept();
    EXPECT_EQ(end.receive(kPreface.size()), kPreface);
    end.send("answer");
    EXPECT_EQ(wallet.receive(6), "answer");
    const auto own = wallet.local_text();
    wallet.close();
    EXPECT_EQ(end.receive_all(), "");
    end.close();
    haproxy.signal(SIGTERM);
    haproxy.wait();
    expected.push_back(own);
  }
  EXPECT_EQ(proxy_->stop(), 0) << proxy_->process().stderr_text();
  const auto traffic = read_traffic(file_);
  ASSERT_EQ(traffic.connections.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& connection = traffic.connections.at(i + 1);
    EXPECT_EQ(connection.open.downstream_peer(), expected[i]);
    EXPECT_EQ(connection.bytes[0], kPreface);
    EXPECT_EQ(connection.bytes[1], "answer");
  }
}

}  // namespace
}  // namespace ztape::test
