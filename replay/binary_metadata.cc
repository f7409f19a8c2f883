#include "replay/binary_metadata.h"

#include <cstdint>
#include <string>

namespace ztape::replay {
namespace {

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  uint32_t bits = 0;
  unsigned held = 0;  // how many of the low bits of `bits` are not written yet
  for (const char byte : bytes) {
    bits = (bits << 8U) | static_cast<uint8_t>(byte);
    held += 8;
    for (; held >= 6; held -= 6) text += kDigits[(bits >> (held - 6)) & 63U];
    bits &= (1U << held) - 1;
  }
  if (held > 0) text += kDigits[(bits << (6 - held)) & 63U];
  return text;
}

}  // namespace

bool is_true_binary(std::string_view name, std::string_view value) {
  return name.ends_with("-bin") && value.starts_with('\0');
}

void to_base64(http2::HeaderList& fields) {
  for (auto& field : fields) {
    if (is_true_binary(field.name, field.value)) field.value = base64(std::string_view(field.value).substr(1));
  }
}

}  // namespace ztape::replay
