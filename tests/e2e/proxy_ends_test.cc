// How connections begin and end through `ztape proxy`: what one peer does, the other sees, and the capture has it.
#include <gtest/gtest.h>

#include "tests/support/proxy_process.h"
#include "tests/support/recorded_bytes.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

class ProxyEnds : public testing::Test {
 protected:
  void start(const std::vector<std::string>& more = {}, const std::string& server_address = "127.0.0.1:0") {
    listener_ = ListeningSocket(server_address);
    proxy_ = std::make_unique<ProxyProcess>(listener_.address(), capture_, more);
  }

  void connect() {
    client_ = Socket::connect(proxy_->address());
    server_ = listener_.accept();
  }

  // Waits until everything that crossed so far is known to both ends, by one more byte each way.
  void exchange() {
    client_.send("?");
    ASSERT_EQ(server_.receive(1), "?");
    server_.send("!");
    ASSERT_EQ(client_.receive(1), "!");
  }

  RecordedTraffic stop(int expected_status = 0) {
    EXPECT_EQ(proxy_->stop(), expected_status) << proxy_->process().stderr_text();
    return read_traffic(capture_);
  }

  TemporaryDirectory folder_;
  std::string capture_ = folder_.file("a.ztape");
  ListeningSocket listener_;
  std::unique_ptr<ProxyProcess> proxy_;
  Socket client_, server_;
};

TEST_F(ProxyEnds, AHalfCloseOfTheClientIsPassedOnAndAnswersStillCome) {
  start();
  connect();
  client_.send("question");
  client_.shutdown_write();
  EXPECT_EQ(server_.receive_all(), "question");
  server_.send("first ");
  EXPECT_EQ(client_.receive(6), "first ");
  server_.send("second");
  server_.shutdown_write();
  EXPECT_EQ(client_.receive_all(), "second");
  const auto traffic = stop();
  const auto& connection = traffic.connections.at(1);
  EXPECT_EQ(connection.bytes[0], "question");
  EXPECT_EQ(connection.bytes[1], "first second");
  EXPECT_EQ(connection.close.first_side(), capture::DOWNSTREAM);
  EXPECT_EQ(connection.close.client_to_server().end(), capture::FIN);
  EXPECT_EQ(connection.close.server_to_client().end(), capture::FIN);
}

TEST_F(ProxyEnds, AHalfCloseOfTheServerIsPassedOnAndRequestsStillCross) {
  start();
  connect();
  server_.send("greeting");
  server_.shutdown_write();
  EXPECT_EQ(client_.receive_all(), "greeting");
  for (const char* part : {"one", "two", "three"}) {
    client_.send(part);
    EXPECT_EQ(server_.receive(std::string(part).size()), part);
  }
  client_.shutdown_write();
  EXPECT_EQ(server_.receive_all(), "");
  const auto traffic = stop();
  EXPECT_EQ(traffic.connections.at(1).bytes[0], "onetwothree");
  EXPECT_EQ(traffic.connections.at(1).close.first_side(), capture::UPSTREAM);
}

TEST_F(ProxyEnds, AResetOfTheServerReachesTheClientAsAResetAfterTheBytesBeforeIt) {
  start();
  connect();
  exchange();
  server_.send("last words");
  EXPECT_EQ(client_.receive(4), "last");
  server_.reset();
  std::string error;
  EXPECT_EQ(client_.receive_all(&error), " words");
  EXPECT_EQ(error, "ECONNRESET");
  const auto traffic = stop();
  const auto& connection = traffic.connections.at(1);
  EXPECT_EQ(connection.bytes[1], "!last words");
  ASSERT_EQ(connection.ends.size(), 1u);
  EXPECT_EQ(connection.ends[0].direction(), capture::SERVER_TO_CLIENT);
  EXPECT_EQ(connection.ends[0].end(), capture::RESET);
  EXPECT_EQ(connection.close.first_side(), capture::UPSTREAM);
  EXPECT_EQ(connection.close.server_to_client().end(), capture::RESET);
  EXPECT_EQ(connection.close.client_to_server().end(), capture::NOT_ENDED);
  EXPECT_EQ(connection.close.error(), "upstream: connection reset");
}

TEST_F(ProxyEnds, AResetOfTheClientReachesTheServerAsAReset) {
  start();
  connect();
  exchange();
  client_.reset();
  std::string error;
  EXPECT_EQ(server_.receive_all(&error), "");
  EXPECT_EQ(error, "ECONNRESET");
  const auto traffic = stop();
  EXPECT_EQ(traffic.connections.at(1).close.first_side(), capture::DOWNSTREAM);
  EXPECT_EQ(traffic.connections.at(1).close.client_to_server().end(), capture::RESET);
}

TEST_F(ProxyEnds, AResetOfTheClientAfterItsFinReachesTheServerOnceItAnswers) {
  start();
  connect();
  exchange();
  client_.shutdown_write();
  EXPECT_EQ(server_.receive_all(), "");
  client_.reset();
  std::string error;
  // The proxy learns of the reset by what it sends: the server goes on until it is told.
  try {
    for (;;) server_.send("answer ");
  } catch (const std::runtime_error& failure) {
    error = failure.what();
  }
  EXPECT_TRUE(error.find("Connection reset") != std::string::npos || error.find("Broken pipe") != std::string::npos)
      << error;
  const auto traffic = stop();
  const auto& connection = traffic.connections.at(1);
  ASSERT_EQ(connection.ends.size(), 2u);
  EXPECT_EQ(connection.ends[0].end(), capture::FIN);
  EXPECT_EQ(connection.ends[1].end(), capture::RESET);
  EXPECT_EQ(connection.ends[1].direction(), capture::CLIENT_TO_SERVER);
}

TEST_F(ProxyEnds, ARefusingIndexerResetsTheWalletAndTheProxyGoesOn) {
  start();
  const auto address = listener_.address();
  listener_.close();
  client_ = Socket::connect(proxy_->address());
  std::string error;
  EXPECT_EQ(client_.receive_all(&error), "");
  EXPECT_EQ(error, "ECONNRESET");
  proxy_->process().wait_for_stderr("connection 1: upstream " + address + ": connection refused");

  listener_ = ListeningSocket(address);
  connect();
  exchange();
  const auto traffic = stop(3);  // unreachable, and how often, is in the summary
  ASSERT_EQ(traffic.connections.size(), 2u);
  const auto& refused = traffic.connections.at(1);
  EXPECT_TRUE(refused.closed);
  EXPECT_EQ(refused.open.upstream_peer(), address);
  EXPECT_EQ(refused.open.upstream_local(), "");
  EXPECT_EQ(refused.close.error(), "upstream " + address + ": connection refused");
  EXPECT_EQ(refused.close.first_side(), capture::UPSTREAM);
  EXPECT_EQ(traffic.connections.at(2).bytes[0], "?");
  const auto out = proxy_->process().stdout_text();
  EXPECT_NE(out.find("not connected upstream: 1 connection\n"), std::string::npos) << out;
}

TEST_F(ProxyEnds, WhatTheWalletSentBeforeTheIndexerAnsweredIsNotLost) {
  start();
  client_ = Socket::connect(proxy_->address());
  client_.send("early");
  client_.shutdown_write();
  server_ = listener_.accept();
  EXPECT_EQ(server_.receive_all(), "early");
  server_.shutdown_write();
  EXPECT_EQ(client_.receive_all(), "");
  EXPECT_EQ(stop().connections.at(1).bytes[0], "early");
}

TEST_F(ProxyEnds, BothSidesMayBeIpv6) {
  start({"--listen", "[::1]:0"}, "[::1]:0");
  EXPECT_TRUE(proxy_->address().starts_with("[::1]:")) << proxy_->address();
  connect();
  exchange();
  const auto traffic = stop();
  const auto& open = traffic.connections.at(1).open;
  EXPECT_EQ(open.downstream_peer(), client_.local_text());
  EXPECT_EQ(open.downstream_local(), proxy_->address());
  EXPECT_EQ(open.upstream_peer(), listener_.address());
  EXPECT_EQ(open.upstream_url(), "http://" + listener_.address());
  EXPECT_TRUE(open.upstream_options().nodelay());
  EXPECT_FALSE(open.upstream_options().quickack_every_read());
  EXPECT_NE(open.upstream_options().congestion_control(), "");
}

TEST_F(ProxyEnds, OptionsOfTheSocketsAreRecorded) {
  start({"--upstream-nodelay", "off", "--downstream-quickack", "read"});
  connect();
  exchange();
  const auto open = stop().connections.at(1).open;
  EXPECT_FALSE(open.upstream_options().nodelay());
  EXPECT_FALSE(open.upstream_options().quickack_every_read());
  EXPECT_TRUE(open.downstream_options().nodelay());
  EXPECT_TRUE(open.downstream_options().quickack_every_read());
}

TEST_F(ProxyEnds, WhatIsNotHttp2IsRelayedAndRecordedWithTheReason) {
  start();
  connect();
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 256\r\n\r\n";
  for (int i = 0; i < 256; ++i) answer += static_cast<char>(i);
  client_.send(request);
  EXPECT_EQ(server_.receive(request.size()), request);
  server_.send(answer);
  EXPECT_EQ(client_.receive(answer.size()), answer);
  const auto traffic = stop();
  const auto& connection = traffic.connections.at(1);
  EXPECT_EQ(connection.bytes[0], request);
  EXPECT_EQ(connection.bytes[1], answer);
  EXPECT_TRUE(connection.frames[0].empty());
  ASSERT_FALSE(traffic.states.empty());
  EXPECT_FALSE(traffic.states[0].client_to_server().readable());
  EXPECT_NE(traffic.states[0].client_to_server().unreadable_reason(), "");
}

TEST_F(ProxyEnds, AConnectionThatIsOpenAtTheEndIsClosedInTheCapture) {
  start();
  connect();
  exchange();
  const auto traffic = stop();
  const auto& connection = traffic.connections.at(1);
  EXPECT_TRUE(connection.closed);
  EXPECT_EQ(connection.close.first_side(), capture::SIDE_UNKNOWN);
  EXPECT_EQ(connection.close.client_to_server().bytes(), 1u);
  EXPECT_EQ(client_.receive_all(), "");
  EXPECT_EQ(server_.receive_all(), "");
}

TEST_F(ProxyEnds, AConnectionAboveTheMostIsTurnedAwayAndTheOthersGoOn) {
  start({"--max-connections", "1"});
  connect();
  exchange();
  auto second = Socket::connect(proxy_->address());
  std::string error;
  EXPECT_EQ(second.receive_all(&error), "");
  EXPECT_EQ(error, "ECONNRESET");
  proxy_->process().wait_for_stderr("--max-connections");
  exchange();
  EXPECT_EQ(stop().connections.size(), 1u);
}

}  // namespace
}  // namespace ztape::test
