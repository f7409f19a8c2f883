#include "tests/peer/metadata.h"

namespace ztape::peer {

uint64_t mixed(uint64_t seed) {
  uint64_t value = seed + 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

std::string random_bytes(uint64_t seed, std::size_t size) {
  std::string bytes;
  bytes.reserve(size + 8);
  for (uint64_t i = 0; bytes.size() < size; ++i) {
    const uint64_t word = mixed(seed * 0x100000001b3 + i);
    for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(word >> shift));
  }
  bytes.resize(size);
  return bytes;
}

std::string hex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[(byte >> 4) & 0xf];
    text += kDigits[byte & 0xf];
  }
  return text;
}

std::string random_hex(uint64_t seed, std::size_t bytes) {
  return hex(random_bytes(seed, bytes));
}

}  // namespace ztape::peer
