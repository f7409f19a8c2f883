#include "tests/peer/digest.h"

#include <cinttypes>
#include <cstdio>

namespace ztape::peer {
namespace {

constexpr std::size_t kLongestShown = 100;

}  // namespace

void Digest::add(std::string_view message) {
  ++messages_;
  bytes_ += message.size();
  // The length too: the same bytes cut into other messages are something else.
  hash(std::to_string(message.size()) + ":");
  hash(message);
}

std::string Digest::text() const {
  char text[96];
  std::snprintf(text, sizeof(text), "%" PRIu64 " messages, %" PRIu64 " bytes, %016" PRIx64, messages_, bytes_, hash_);
  return text;
}

void Digest::hash(std::string_view bytes) {
  for (const char byte : bytes) hash_ = (hash_ ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
}

std::string shown(std::string_view text) {
  if (text.size() > kLongestShown) {
    Digest digest;
    digest.add(text);
    return digest.text();
  }
  std::string out;
  for (const char byte : text) {
    char escape[8];
    const auto value = static_cast<unsigned char>(byte);
    std::snprintf(escape, sizeof(escape), "\\x%02x", value);
    out += value < 0x20 || value >= 0x7f || byte == '"' || byte == '\\' ? escape : std::string(1, byte);
  }
  return out;
}

}  // namespace ztape::peer
