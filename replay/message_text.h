// Messages as people read them in one line, and how far apart two of them are.
#pragma once

#include <string>
#include <string_view>

namespace google::protobuf {
class Descriptor;
}

namespace ztape::replay {

// "{start: {height: 1}, end: {height: 100}}", at most some `max_bytes` long. Bytes are hex, hashes reversed as
// people read them; anything that is not printable is escaped. Without a type, or where it does not fit: "5 bytes
// 0801120210".
std::string short_text(const google::protobuf::Descriptor* type, std::string_view body, std::size_t max_bytes = 200);

// 0 for equal messages; each field that differs adds up to 1, less when the values are close. Without a type the bytes
// are compared.
double distance(const google::protobuf::Descriptor* type, std::string_view a, std::string_view b);

}  // namespace ztape::replay
