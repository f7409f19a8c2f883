// The PROXY header, byte by byte, as haproxy's proxy-protocol.txt has it.
#include "proxy/proxy_protocol.h"

#include <gtest/gtest.h>

namespace ztape::proxy {
namespace {

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

struct Outcome {
  std::size_t taken = 0;
  bool whole = false;
  std::string source;
  std::string problem;
};

// In pieces of `step` bytes.
Outcome read(std::string_view bytes, std::size_t step = 1) {
  ProxyHeaderReader reader;
  Outcome outcome;
  for (std::size_t at = 0; at < bytes.size() && !reader.whole() && reader.problem().empty(); at += step) {
    outcome.taken += reader.take(bytes_of(bytes.substr(at, step)));
  }
  outcome.whole = reader.whole();
  outcome.source = reader.source();
  outcome.problem = reader.problem();
  return outcome;
}

void expect_header(const std::string& header, const std::string& source) {
  const auto with_more = header + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (std::size_t step = 1; step <= with_more.size(); ++step) {
    const auto outcome = read(with_more, step);
    EXPECT_TRUE(outcome.whole) << outcome.problem << " in steps of " << step;
    EXPECT_EQ(outcome.taken, header.size()) << "in steps of " << step;
    EXPECT_EQ(outcome.source, source);
  }
  for (std::size_t size = 0; size < header.size(); ++size) {
    const auto cut = read(header.substr(0, size));
    EXPECT_FALSE(cut.whole) << size;
    EXPECT_EQ(cut.problem, "") << size;
    EXPECT_EQ(cut.taken, size);
  }
}

void expect_problem(const std::string& header, const std::string& text) {
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, header.size()}) {
    const auto outcome = read(header, step);
    EXPECT_FALSE(outcome.whole);
    EXPECT_EQ(outcome.source, "");
    EXPECT_NE(outcome.problem.find(text), std::string::npos) << outcome.problem;
    EXPECT_EQ(outcome.problem.find('\n'), std::string::npos) << "one line";
  }
}

std::string version_2(uint8_t version_and_command, uint8_t family, const std::string& rest) {
  std::string header("\r\n\r\n\0\r\nQUIT\n", 12);
  header += static_cast<char>(version_and_command);
  header += static_cast<char>(family);
  header += static_cast<char>(rest.size() >> 8);
  header += static_cast<char>(rest.size());
  return header + rest;
}

const std::string kIpv4("\xc0\x00\x02\x01\x0a\x00\x00\x01\xc3\x50\x23\xab", 12);  // 192.0.2.1:50000 to 10.0.0.1:9131
const std::string kIpv6 =
    "\x20\x01\x0d\xb8" + std::string(11, '\0') + "\x01" + std::string(16, '\x01') + "\xc3\x50\x23\xab";

TEST(ProxyProtocol, Version1NamesTheWallet) {
  expect_header("PROXY TCP4 192.0.2.1 10.0.0.1 50000 9067\r\n", "192.0.2.1:50000");
  expect_header("PROXY TCP6 2001:db8::1 ::1 50000 9067\r\n", "[2001:db8::1]:50000");
  expect_header("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255:65535");
  expect_header("PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", "0.0.0.0:0");
}

TEST(ProxyProtocol, Version1UnknownLeavesTheConnectionsOwnAddress) {
  expect_header("PROXY UNKNOWN\r\n", "");
  expect_header("PROXY UNKNOWN whatever else stands here\r\n", "");
  // The worst case of the specification, 107 bytes.
  const std::string worst =
      "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";
  ASSERT_EQ(worst.size(), 107u);
  expect_header(worst, "");
}

TEST(ProxyProtocol, Version1LongerThan107BytesIsRefusedAtThe107th) {
  const std::string line = "PROXY UNKNOWN " + std::string(92, 'x') + "\r\n";
  ASSERT_EQ(line.size(), 108u);
  expect_problem(line, "longer than 107 bytes");
  EXPECT_EQ(read(line).taken, 107u);
  EXPECT_EQ(read("PROXY UNKNOWN " + std::string(93, 'x')).taken, 107u);
}

TEST(ProxyProtocol, Version1MustBeExact) {
  expect_problem("PROXY TCP4 192.0.2.1 10.0.0.1 50000 9067\n", "does not end with CR LF");
  expect_problem("PROXY TCP5 192.0.2.1 10.0.0.1 50000 9067\r\n", "names no family");
  expect_problem("PROXY  TCP4 192.0.2.1 10.0.0.1 50000 9067\r\n", "names no family");
  expect_problem("PROXY \r\n", "names no family");
  expect_problem("PROXY TCP4 192.0.2.1 10.0.0.1 50000\r\n", "has not two addresses and two ports");
  expect_problem("PROXY TCP4 192.0.2.1 10.0.0.1 50000 9067 \r\n", "has not two addresses and two ports");
  expect_problem("PROXY TCP4 192.0.2.1 10.0.0.1 50000 65536\r\n", "a port that is none");
  expect_problem("PROXY TCP4 192.0.2.1 10.0.0.1 -1 9067\r\n", "a port that is none");
  expect_problem("PROXY TCP4 192.0.2.1 10.0.0.1 050 9067\r\n", "a port that is none");
  expect_problem("PROXY TCP4 192.0.2.1 10.0.0.1  9067\r\n", "a port that is none");
  expect_problem("PROXY TCP4 192.0.2.256 10.0.0.1 50000 9067\r\n", "an address that is none");
  expect_problem("PROXY TCP4 192.0.2.1 ::1 50000 9067\r\n", "an address that is none");
  expect_problem("PROXY TCP6 192.0.2.1 ::1 50000 9067\r\n", "an address that is none");
  expect_problem("PROXY TCP6 ::1 ::g 50000 9067\r\n", "an address that is none");
}

TEST(ProxyProtocol, Version2NamesTheWallet) {
  expect_header(version_2(0x21, 0x11, kIpv4), "192.0.2.1:50000");
  expect_header(version_2(0x21, 0x21, kIpv6), "[2001:db8::1]:50000");
}

TEST(ProxyProtocol, Version2TlvsAreSkippedWhateverTheyHold) {
  expect_header(version_2(0x21, 0x11, kIpv4 + std::string("\x01\x00\x02h2", 5)), "192.0.2.1:50000");
  expect_header(version_2(0x21, 0x11, kIpv4 + "PROXY \r\n"), "192.0.2.1:50000");
  const auto longest = version_2(0x21, 0x11, kIpv4 + std::string(65535 - 12, 'x'));
  for (const std::size_t step : {std::size_t{1}, std::size_t{1000}, longest.size()}) {
    const auto outcome = read(longest + "PRI", step);
    EXPECT_TRUE(outcome.whole);
    EXPECT_EQ(outcome.taken, longest.size());
    EXPECT_EQ(outcome.source, "192.0.2.1:50000");
  }
}

TEST(ProxyProtocol, Version2LocalAndOtherFamiliesLeaveTheConnectionsOwnAddress) {
  expect_header(version_2(0x20, 0x00, ""), "");
  expect_header(version_2(0x20, 0x11, kIpv4), "");
  expect_header(version_2(0x20, 0xff, "anything"), "");
  expect_header(version_2(0x21, 0x00, ""), "");
  expect_header(version_2(0x21, 0x00, "tlvs"), "");
  expect_header(version_2(0x21, 0x12, kIpv4), "");
  expect_header(version_2(0x21, 0x31, std::string(216, 'u')), "");
}

TEST(ProxyProtocol, Version2MustBeExact) {
  expect_problem(version_2(0x11, 0x11, kIpv4), "version 1; 1 and 2 are known");
  expect_problem(version_2(0x31, 0x11, kIpv4), "version 3");
  expect_problem(version_2(0x22, 0x11, kIpv4), "command 2");
  expect_problem(version_2(0x21, 0x41, kIpv4), "family 65");
  expect_problem(version_2(0x21, 0x13, kIpv4), "family 19");
  expect_problem(version_2(0x21, 0x11, kIpv4.substr(1)), "too short");
  expect_problem(version_2(0x21, 0x21, kIpv6.substr(1)), "too short");
  expect_problem(version_2(0x21, 0x31, std::string(215, 'u')), "too short");
}

TEST(ProxyProtocol, WhatIsNoHeaderIsKnownAtTheFirstByteThatDiffers) {
  EXPECT_EQ(read("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").taken, 3u);
  EXPECT_EQ(read("\r\nGET / HTTP/1.1\r\n").taken, 3u);
  EXPECT_EQ(read("\x16\x03\x01").taken, 1u);
  expect_problem("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "no PROXY header, it begins with 'PRI'");
  expect_problem("GET / HTTP/1.1\r\n", "no PROXY header, it begins with 'G'");
  expect_problem(std::string("\r\n\r\n\0\r\nQUIX\n", 12), "no PROXY header");
}

}  // namespace
}  // namespace ztape::proxy
