#include "proxy/proxy_protocol.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

namespace ztape::proxy {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kLineBegin = "PROXY ";
constexpr std::string_view kSignature = "\r\n\r\n\0\r\nQUIT\n"sv;  // 2.2
constexpr std::size_t kFixedBytes = 16;

// What a log may show of somebody's bytes.
std::string shown(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += byte >= ' ' && byte <= '~' ? byte : '.';
  return "'" + text + "'";
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0;;) {
    const auto space = line.find(' ', begin);
    words.push_back(line.substr(begin, space - begin));
    if (space == std::string_view::npos) return words;
    begin = space + 1;
  }
}

// 2.1: 0 to 65535, without leading zeros.
std::optional<uint16_t> port_of(std::string_view word) {
  uint16_t port = 0;
  const auto* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, port);
  if (error != std::errc() || stop != end || (word.size() > 1 && word[0] == '0')) return std::nullopt;
  return port;
}

std::string text_of(int family, const void* address, uint16_t port) {
  char buffer[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, address, buffer, sizeof(buffer));
  const auto host = family == AF_INET6 ? "[" + std::string(buffer) + "]" : std::string(buffer);
  return host + ":" + std::to_string(port);
}

// "" where the word is no such address.
std::string address_of(int family, std::string_view word, uint16_t port) {
  in6_addr address{};
  if (inet_pton(family, std::string(word).c_str(), &address) != 1) return "";
  return text_of(family, &address, port);
}

uint16_t big_endian_16(std::string_view bytes) {
  return static_cast<uint16_t>((static_cast<uint8_t>(bytes[0]) << 8) | static_cast<uint8_t>(bytes[1]));
}

}  // namespace

std::size_t ProxyHeaderReader::take(std::span<const uint8_t> bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && state_ != State::whole && state_ != State::bad) {
    if (state_ == State::skipping) {
      const auto skipped = std::min(left_, bytes.size() - taken);
      taken += skipped;
      left_ -= skipped;
      if (left_ == 0) state_ = State::whole;
      continue;
    }
    take_byte(bytes[taken++]);
  }
  return taken;
}

void ProxyHeaderReader::take_byte(uint8_t byte) {
  held_ += static_cast<char>(byte);
  switch (state_) {
    case State::first: return begin(byte);
    case State::line: return read_line();
    case State::fixed: return read_fixed();
    case State::addresses: return read_addresses();
    default: return;
  }
}

void ProxyHeaderReader::begin(uint8_t byte) {
  if (byte == static_cast<uint8_t>(kLineBegin[0])) {
    state_ = State::line;
  } else if (byte == static_cast<uint8_t>(kSignature[0])) {
    state_ = State::fixed;
  } else {
    fail("no PROXY header, it begins with " + shown(held_));
  }
}

// Version 1: one line of text.
void ProxyHeaderReader::read_line() {
  if (held_.size() <= kLineBegin.size() && !kLineBegin.starts_with(held_)) {
    return fail("no PROXY header, it begins with " + shown(held_));
  }
  if (held_.back() != '\n') {
    if (held_.size() >= kLongestLine) fail("the PROXY line is longer than 107 bytes: " + shown(held_));
    return;
  }
  const auto wrong = [this](const std::string& what) { fail("the PROXY line " + what + ": " + shown(held_)); };
  if (!held_.ends_with("\r\n")) return wrong("does not end with CR LF");
  const auto words = words_of(std::string_view(held_).substr(0, held_.size() - 2));
  if (words[1] == "UNKNOWN") {  // whatever follows is to be ignored
    state_ = State::whole;
    return;
  }
  const int family = words[1] == "TCP4" ? AF_INET : AF_INET6;
  if (words[1] != "TCP4" && words[1] != "TCP6") return wrong("names no family of TCP4, TCP6 and UNKNOWN");
  if (words.size() != 6) return wrong("has not two addresses and two ports");
  const auto source_port = port_of(words[4]), destination_port = port_of(words[5]);
  if (!source_port || !destination_port) return wrong("has a port that is none");
  source_ = address_of(family, words[2], *source_port);
  if (source_.empty() || address_of(family, words[3], *destination_port).empty()) {
    source_.clear();
    return wrong("has an address that is none");
  }
  state_ = State::whole;
}

// Version 2: a signature, version and command, family and protocol, length.
void ProxyHeaderReader::read_fixed() {
  if (held_.size() <= kSignature.size() && !kSignature.starts_with(held_)) {
    return fail("no PROXY header, it begins with " + shown(held_));
  }
  if (held_.size() < kFixedBytes) return;
  const auto version_and_command = static_cast<uint8_t>(held_[12]), family = static_cast<uint8_t>(held_[13]);
  const auto command = version_and_command & 0xf;
  if (version_and_command >> 4 != 2) {
    return fail("a PROXY header of version " + std::to_string(version_and_command >> 4) + "; 1 and 2 are known");
  }
  if (command > 1) return fail("a PROXY header with command " + std::to_string(command) + "; 0 and 1 are known");
  left_ = big_endian_16(std::string_view(held_).substr(14));
  held_.clear();
  if (command == 0) return skip_rest();  // LOCAL: the balancer's own, a health check; the rest is to be ignored
  const int network = family >> 4, transport = family & 0xf;
  if (network > 3 || transport > 2) return fail("a PROXY header with family " + std::to_string(family) + ", unknown");
  constexpr std::size_t kAddressBytes[] = {0, 12, 36, 216};  // UNSPEC, IPv4, IPv6, UNIX
  const std::size_t needed = transport == 0 ? 0 : kAddressBytes[network];
  if (left_ < needed) return fail("a PROXY header too short for its addresses: " + std::to_string(left_) + " bytes");
  if (transport != 1 || network == 0 || network == 3) return skip_rest();  // no TCP: the connection's own address holds
  address_bytes_ = needed;
  left_ -= needed;
  state_ = State::addresses;
}

void ProxyHeaderReader::read_addresses() {
  if (held_.size() < address_bytes_) return;
  const bool v6 = address_bytes_ == 36;
  const std::size_t ports = v6 ? 32 : 8;
  source_ = text_of(v6 ? AF_INET6 : AF_INET, held_.data(), big_endian_16(std::string_view(held_).substr(ports)));
  skip_rest();  // what else the balancer tells, as TLVs
}

void ProxyHeaderReader::skip_rest() {
  held_.clear();
  state_ = left_ == 0 ? State::whole : State::skipping;
}

void ProxyHeaderReader::fail(std::string problem) {
  state_ = State::bad;
  problem_ = std::move(problem);
}

}  // namespace ztape::proxy
