// The header that a balancer sends before a connection's own bytes: the PROXY protocol, versions 1 and 2
// (haproxy, doc/proxy-protocol.txt). Reads it piece by piece; no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ztape::proxy {

class ProxyHeaderReader {
 public:
  // 2.1: the longest line of version 1, with its CR LF.
  static constexpr std::size_t kLongestLine = 107;

  // Takes what belongs to the header from the front of `bytes`, and says how many that were: all of them, until it is
  // whole() or there is a problem().
  std::size_t take(std::span<const uint8_t> bytes);

  [[nodiscard]] bool whole() const { return state_ == State::whole; }
  // Why this is no such header, or "".
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // Whether nothing was taken yet.
  [[nodiscard]] bool untouched() const { return state_ == State::first && held_.empty(); }

  // The wallet, "192.0.2.1:50000" or "[2001:db8::1]:50000". "" where the header tells of nobody else, so that the
  // connection's own address holds: UNKNOWN, LOCAL, or a family that is not TCP's.
  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  enum class State { first, line, fixed, addresses, skipping, whole, bad };

  void take_byte(uint8_t byte);
  void begin(uint8_t byte);
  void read_line();
  void read_fixed();
  void read_addresses();
  void skip_rest();
  void fail(std::string problem);

  State state_ = State::first;
  std::string held_;               // of the part that is being read
  std::size_t address_bytes_ = 0;  // of version 2
  std::size_t left_ = 0;           // of version 2, after the part that is being read
  std::string source_;
  std::string problem_;
};

}  // namespace ztape::proxy
