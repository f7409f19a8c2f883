// What a direction of a call carried: how many messages, how many bytes, and a hash of them in their order. The client
// makes it of what it sent and received, the test of what was recorded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ztape::peer {

class Digest {
 public:
  void add(std::string_view message);
  [[nodiscard]] uint64_t messages() const { return messages_; }
  // "3 messages, 120 bytes, 5e9c0f..."
  [[nodiscard]] std::string text() const;

 private:
  void hash(std::string_view bytes);

  uint64_t messages_ = 0;
  uint64_t bytes_ = 0;
  uint64_t hash_ = 0xcbf29ce484222325;  // FNV-1a, 64 bits
};

// For a line of output: printable ASCII stays, all else is escaped; a long text is its digest.
std::string shown(std::string_view text);

}  // namespace ztape::peer
