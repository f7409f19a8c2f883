#include "http2/base64.h"

#include <algorithm>

namespace ztape::http2 {
namespace {

int digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

// Four characters, of which up to two at the end may be padding.
bool decode_group(std::string_view group, std::vector<uint8_t>& into) {
  const std::size_t padding = group[3] != '=' ? 0 : group[2] != '=' ? 1 : 2;
  uint32_t bits = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const int value = i < 4 - padding ? digit(group[i]) : 0;
    if (value < 0) return false;
    bits = bits << 6 | static_cast<uint32_t>(value);
  }
  for (std::size_t i = 0; i < 3 - padding; ++i) into.push_back(static_cast<uint8_t>(bits >> (16 - 8 * i)));
  return true;
}

}  // namespace

bool decode_base64_groups(std::string& text, std::vector<uint8_t>& into) {
  const std::size_t whole = text.size() / 4 * 4;
  for (std::size_t at = 0; at < whole; at += 4) {
    if (!decode_group(std::string_view(text).substr(at, 4), into)) return false;
  }
  text.erase(0, whole);
  return true;
}

std::optional<std::vector<uint8_t>> decode_base64url(std::string_view text) {
  std::string plain(text);
  std::ranges::replace(plain, '-', '+');
  std::ranges::replace(plain, '_', '/');
  if (plain.size() % 4 == 1) return std::nullopt;
  plain.append((4 - plain.size() % 4) % 4, '=');
  std::vector<uint8_t> bytes;
  if (!decode_base64_groups(plain, bytes)) return std::nullopt;
  return bytes;
}

}  // namespace ztape::http2
