#include "http2/frame.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace ztape::http2 {
namespace {

std::string hex_number(uint32_t value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%02x", value);
  return text.data();
}

}  // namespace

std::string frame_type_name(uint8_t type) {
  static constexpr std::array kNames{"DATA",         "HEADERS", "PRIORITY", "RST_STREAM",    "SETTINGS",
                                     "PUSH_PROMISE", "PING",    "GOAWAY",   "WINDOW_UPDATE", "CONTINUATION"};
  return type < kNames.size() ? kNames[type] : hex_number(type);
}

std::string error_code_name(uint32_t code) {
  static constexpr std::array kNames{"NO_ERROR",
                                     "PROTOCOL_ERROR",
                                     "INTERNAL_ERROR",
                                     "FLOW_CONTROL_ERROR",
                                     "SETTINGS_TIMEOUT",
                                     "STREAM_CLOSED",
                                     "FRAME_SIZE_ERROR",
                                     "REFUSED_STREAM",
                                     "CANCEL",
                                     "COMPRESSION_ERROR",
                                     "CONNECT_ERROR",
                                     "ENHANCE_YOUR_CALM",
                                     "INADEQUATE_SECURITY",
                                     "HTTP_1_1_REQUIRED"};
  return code < kNames.size() ? kNames[code] : hex_number(code);
}

bool is_parsed_whole(uint8_t type) {
  switch (type) {
    case kHeaders:
    case kRstStream:
    case kSettings:
    case kPushPromise:
    case kGoaway:
    case kWindowUpdate:
    case kContinuation: return true;
    default: return false;
  }
}

const std::string* find_header(const HeaderList& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &HeaderField::name);
  return found == fields.end() ? nullptr : &found->value;
}

std::optional<int> find_number(const HeaderList& fields, std::string_view name) {
  const auto* text = find_header(fields, name);
  if (!text) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

std::vector<Setting> read_settings(std::span<const uint8_t> payload) {
  constexpr std::size_t kEntryBytes = 6;
  std::vector<Setting> settings;
  for (; payload.size() >= kEntryBytes; payload = payload.subspan(kEntryBytes)) {
    const auto byte = [&](std::size_t i) { return uint32_t{payload[i]}; };
    settings.push_back(
        {static_cast<uint16_t>(byte(0) << 8 | byte(1)), byte(2) << 24 | byte(3) << 16 | byte(4) << 8 | byte(5)});
  }
  return settings;
}

}  // namespace ztape::http2
