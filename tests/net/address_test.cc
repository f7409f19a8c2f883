#include "net/address.h"

#include <gtest/gtest.h>

namespace ztape::net {
namespace {

TEST(Address, EveryFormOfTheContractIsRead) {
  struct Row {
    const char* text;
    bool tls;
    const char* host;
    uint16_t port;
    const char* authority;
  };
  for (const Row& row : {
           Row{"127.0.0.1:9067", false, "127.0.0.1", 9067, "127.0.0.1:9067"},
           Row{":9067", false, "", 9067, "localhost:9067"},
           Row{"[::1]:9067", false, "::1", 9067, "[::1]:9067"},
           Row{"localhost:9067", false, "localhost", 9067, "localhost:9067"},
           Row{"http://127.0.0.1:8137", false, "127.0.0.1", 8137, "127.0.0.1:8137"},
           Row{"http://127.0.0.1:8137/", false, "127.0.0.1", 8137, "127.0.0.1:8137"},
           Row{"https://zec.example.org:443", true, "zec.example.org", 443, "zec.example.org:443"},
           Row{"127.0.0.1:0", false, "127.0.0.1", 0, "127.0.0.1:0"},
           Row{"127.0.0.1:65535", false, "127.0.0.1", 65535, "127.0.0.1:65535"},
       }) {
    const auto url = parse_url(row.text);
    ASSERT_TRUE(url) << row.text << ": " << url.error().line();
    EXPECT_EQ(url->tls, row.tls) << row.text;
    EXPECT_EQ(url->host, row.host) << row.text;
    EXPECT_EQ(url->port, row.port) << row.text;
    EXPECT_EQ(url->text, row.text);
    EXPECT_EQ(url->authority(), row.authority) << row.text;
  }
}

TEST(Address, WhatCannotBeUsedIsRefusedWithTheReason) {
  struct Row {
    const char* text;
    const char* reason;
  };
  for (const Row& row : {
           Row{"", "empty"},
           Row{"127.0.0.1", "port is missing"},
           Row{"127.0.0.1:", "port is missing"},
           Row{"[::1]", "port is missing"},
           Row{"127.0.0.1:65536", "above 65535"},
           Row{"127.0.0.1:-1", "not a port"},
           Row{"127.0.0.1:90x", "not a port"},
           Row{"127.0.0.1:9067 ", "not a port"},
           Row{"127.0.0.1:+80", "not a port"},
           Row{"::1:9067", "brackets"},
           Row{"[::1:9067", "']' is missing"},
           Row{"[127.0.0.1]:9067", "not an IPv6 address"},
           Row{"[]:9067", "not an IPv6 address"},
           Row{"[::1]x:9067", "port is missing"},
           Row{"ftp://127.0.0.1:9067", "scheme"},
           Row{"http://127.0.0.1:9067/rpc", "a path, '/rpc'"},
           Row{"127.0.0.1:9067/rpc", "a path, '/rpc'"},
           Row{"http://127.0.0.1:9067?x", "a path, '?x'"},
           Row{"http://me@127.0.0.1:9067", "user name"},
           Row{"http://", "port is missing"},
           Row{"local host:9067", "not a host name"},
       }) {
    const auto url = parse_url(row.text);
    ASSERT_FALSE(url) << row.text;
    EXPECT_EQ(url.error().code, ErrorCode::address);
    EXPECT_EQ(url.error().subject, row.text);
    EXPECT_NE(url.error().message.find(row.reason), std::string::npos) << row.text << ": " << url.error().message;
  }
}

TEST(Address, ResolvesToTheAddressesOfBothFamilies) {
  const auto v4 = resolve(*parse_url("127.0.0.1:9067"));
  ASSERT_TRUE(v4);
  ASSERT_EQ(v4->size(), 1u);
  EXPECT_EQ(v4->front().text(), "127.0.0.1:9067");
  const auto v6 = resolve(*parse_url("[::1]:9067"));
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->front().text(), "[::1]:9067");
}

TEST(Address, AnEmptyHostIsLoopbackForATargetAndEveryAddressForAListener) {
  const auto target = resolve(*parse_url(":9067"));
  ASSERT_TRUE(target);
  for (const auto& address : *target) EXPECT_TRUE(address.loopback_or_private()) << address.text();
  const auto listener = resolve(*parse_url(":9067"), true);
  ASSERT_TRUE(listener);
  for (const auto& address : *listener) {
    EXPECT_TRUE(address.text() == "[::]:9067" || address.text() == "0.0.0.0:9067") << address.text();
  }
}

TEST(Address, ANameWithoutAnAddressIsAnError) {
  const auto found = resolve(*parse_url("no-such-host.invalid:1"));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::address);
}

TEST(Address, TellsPrivateNetworksFromTheOpenOnes) {
  for (const char* text : {"127.8.9.1:1", "10.1.2.3:1", "172.16.0.1:1", "172.31.255.255:1", "192.168.1.1:1",
                           "169.254.0.1:1", "[::1]:1", "[fd00::1]:1", "[fe80::1]:1", "[::ffff:10.0.0.1]:1"}) {
    EXPECT_TRUE(resolve(*parse_url(text))->front().loopback_or_private()) << text;
  }
  for (const char* text : {"8.8.8.8:1", "172.15.0.1:1", "172.32.0.1:1", "192.169.0.1:1", "11.0.0.1:1",
                           "[2001:db8::1]:1", "[::ffff:8.8.8.8]:1"}) {
    EXPECT_FALSE(resolve(*parse_url(text))->front().loopback_or_private()) << text;
  }
}

TEST(Address, AMappedAddressIsShownAsTheIpv4AddressItStandsFor) {
  EXPECT_EQ(resolve(*parse_url("[::ffff:10.0.0.1]:7"))->front().text(), "10.0.0.1:7");
}

TEST(SocketAddress, TheHostIsTheTextWithoutPortAndBrackets) {
  for (const auto& [text, host] : {std::pair{"127.0.0.1:9067", "127.0.0.1"}, std::pair{"[::1]:9067", "::1"}}) {
    EXPECT_EQ(resolve(*parse_url(text))->front().host(), host);
  }
  EXPECT_EQ(SocketAddress{}.host(), "");
}

TEST(IpAddress, IsToldFromAName) {
  for (const char* text : {"127.0.0.1", "::1", "2001:db8::7"}) EXPECT_TRUE(is_ip_address(text)) << text;
  for (const char* text : {"", "localhost", "127.0.0.1:1", "[::1]", "127.1"}) EXPECT_FALSE(is_ip_address(text)) << text;
}

}  // namespace
}  // namespace ztape::net
