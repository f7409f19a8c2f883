// Base64 as gRPC-Web's text form and the HTTP2-Settings header have it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ztape::http2 {

// Takes the whole groups of four characters, each with padding of its own where it has some (a stream of pieces that
// were encoded one by one), from the front of `text` and appends what they say. False: that is no base64 (RFC 4648,
// section 4).
bool decode_base64_groups(std::string& text, std::vector<uint8_t>& into);

// All of it, in the alphabet for URLs (section 5), without padding. nullopt: it is none.
std::optional<std::vector<uint8_t>> decode_base64url(std::string_view text);

}  // namespace ztape::http2
