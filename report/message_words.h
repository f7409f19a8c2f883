// Messages decoded for a person or as JSON. By the type of their method, where that is known; otherwise as protobuf's
// wire format has them, by field number.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace google::protobuf {
class Descriptor;
}

namespace ztape::report {

// "{height: 12, hash: 00a3...}": bytes are hex, hashes and transaction ids reversed as people read them
// (shown_reversed), text is quoted and escaped, fields that the type does not know are "#7". Long bytes are shortened,
// and so is all beyond some `most` bytes. A body that is no message: "5 bytes: 68 65 6c 6c 6f".
std::string message_text(const google::protobuf::Descriptor* type, std::string_view body, std::size_t most);

// The same as JSON, whole: nothing is shortened. A body that is no message: {"bytes": "68656c6c6f"}.
nlohmann::ordered_json message_json(const google::protobuf::Descriptor* type, std::string_view body);

}  // namespace ztape::report
