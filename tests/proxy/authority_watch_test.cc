#include "proxy/authority_watch.h"

#include <gtest/gtest.h>

#include <vector>

#include "proto/capture.pb.h"

namespace ztape::proxy {
namespace {

class AuthorityWatchTest : public testing::Test {
 protected:
  AuthorityWatchTest() {
    watch_.set_on_notice([this](const std::string& line) { lines_.push_back(line); });
  }
  void connect(ConnectionId id, const std::string& url, const std::string& tls_name = "") {
    capture::ConnectionOpen open;
    open.set_connection(id);
    open.set_upstream_url(url);
    if (!tls_name.empty()) open.mutable_upstream_tls()->set_server_name(tls_name);
    watch_.opened(open);
  }
  void ask(ConnectionId id, const std::string& authority) {
    watch_.read(id, {{":path", "/x"}, {":authority", authority}});
  }
  std::vector<std::string> lines_;
  AuthorityWatch watch_;
};

TEST_F(AuthorityWatchTest, AnotherNameIsToldOnceAPairAndByBothNames) {
  connect(1, "https://zec.rocks:443");
  ask(1, "127.0.0.1:9167");
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_TRUE(lines_[0].starts_with("a wallet asks for '127.0.0.1:9167', and the upstream is zec.rocks: "))
      << lines_[0];
  connect(2, "https://zec.rocks:443");
  ask(2, "127.0.0.1:9999");
  EXPECT_EQ(lines_.size(), 1U);
  ask(1, "other.example");  // only the first request of a connection counts
  EXPECT_EQ(lines_.size(), 1U);
}

TEST_F(AuthorityWatchTest, TheUpstreamsOwnNameIsFineWhateverThePortAndTheCase) {
  connect(1, "https://zec.rocks:443");
  ask(1, "ZEC.rocks:9067");
  connect(2, "https://10.1.2.3:443", "zec.rocks");  // --authority
  ask(2, "zec.rocks");
  EXPECT_TRUE(lines_.empty());
}

TEST_F(AuthorityWatchTest, AnUpstreamWithoutANameIsNotWatched) {
  for (const char* url : {"http://127.0.0.1:8137", "http://[::1]:8137", "http://localhost:8137"}) {
    connect(1, url);
    ask(1, "wallet.example");
  }
  EXPECT_TRUE(lines_.empty());
}

TEST_F(AuthorityWatchTest, InventedNamesAreToldAFewTimesAndMadeSafeToShow) {
  for (ConnectionId id = 1; id < 100; ++id) {
    connect(id, "https://zec.rocks:443");
    ask(id, "a" + std::to_string(id) + "\x1b[2J");
    watch_.closed(id);
  }
  EXPECT_EQ(lines_.size(), AuthorityWatch::kMostTold);
  for (const auto& line : lines_) EXPECT_EQ(line.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace ztape::proxy
