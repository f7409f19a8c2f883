#include "http2/first_bytes.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "http2/frame.h"

namespace ztape::http2 {
namespace {

// Reads big-endian lengths and what they count. After a step beyond the end everything is empty and zero.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  uint32_t number(std::size_t bytes) {
    uint32_t value = 0;
    for (const char c : take(bytes)) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
  std::string_view take(std::size_t bytes) {
    const auto taken = rest_.substr(0, bytes);
    if (taken.size() < bytes) short_ = true;
    rest_.remove_prefix(taken.size());
    return taken;
  }
  // A list behind its own length.
  Cursor list(std::size_t length_bytes) { return Cursor(take(number(length_bytes))); }

  [[nodiscard]] bool good() const { return !short_; }
  [[nodiscard]] bool empty() const { return rest_.empty() || short_; }

 private:
  std::string_view rest_;
  bool short_ = false;
};

constexpr uint8_t kTlsAlert = 21;
constexpr uint8_t kTlsHandshake = 22;
constexpr uint8_t kTlsLastType = 24;
constexpr uint32_t kExtensionServerName = 0;
constexpr uint32_t kExtensionAlpn = 16;

}  // namespace

Wire wire_of(std::string_view client_bytes) {
  if (client_bytes.starts_with(kClientPreface)) return Wire::http2;
  if (kClientPreface.starts_with(client_bytes)) return Wire::undecided;
  // A method is a token (RFC 9110, section 9.1); those in use are capital letters, here and there with a hyphen.
  constexpr std::size_t kLongestMethod = 20;
  const auto method = std::ranges::find_if_not(client_bytes, [](char c) { return (c >= 'A' && c <= 'Z') || c == '-'; });
  const auto length = static_cast<std::size_t>(method - client_bytes.begin());
  if (length > kLongestMethod) return Wire::other;
  if (length == client_bytes.size()) return Wire::undecided;
  return length > 0 && *method == ' ' ? Wire::http1 : Wire::other;
}

bool is_tls_record(std::string_view bytes) {
  if (bytes.size() < 3) return false;
  const auto type = static_cast<uint8_t>(bytes[0]);
  return type >= kTlsAlert - 1 && type <= kTlsLastType && bytes[1] == 3 && static_cast<uint8_t>(bytes[2]) <= 4;
}

std::optional<ClientHello> read_client_hello(std::string_view bytes) {
  if (!is_tls_record(bytes) || static_cast<uint8_t>(bytes[0]) != kTlsHandshake) return std::nullopt;
  // A hello that is cut into several records ends here with the first: its name stands near the front.
  Cursor record(bytes.substr(5 <= bytes.size() ? 5 : bytes.size()));
  if (record.number(1) != 1 || !record.good()) return std::nullopt;
  record.take(3);       // its length
  record.take(2 + 32);  // version, random
  record.list(1);       // session id
  record.list(2);       // cipher suites
  record.list(1);       // compression methods
  ClientHello hello;
  record.take(2);  // the extensions' length
  while (!record.empty()) {
    const auto type = record.number(2);
    Cursor extension = record.list(2);
    if (type == kExtensionServerName) {
      Cursor names = extension.list(2);
      if (names.number(1) == 0 && names.good()) hello.server_name = names.take(names.number(2));
    } else if (type == kExtensionAlpn) {
      for (Cursor names = extension.list(2); !names.empty();) hello.alpn.emplace_back(names.take(names.number(1)));
    }
  }
  return hello;
}

std::string hex_dump(std::string_view bytes, std::size_t most) {
  std::string text;
  for (const char c : bytes.substr(0, most)) {
    std::array<char, 4> digits{};
    std::snprintf(digits.data(), digits.size(), text.empty() ? "%02x" : " %02x", static_cast<uint8_t>(c));
    text += digits.data();
  }
  return bytes.size() > most ? text + " ..." : text;
}

}  // namespace ztape::http2
