// The part of a mutation that works on one decoded message. Pure.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "replay/mutate.h"

namespace google::protobuf {
class Message;
}

namespace ztape::replay {

// What is wrong with the rule's value for its field, or "".
std::string check_field(const Mutation& rule);

// How many values of the message were changed. Errors: why the rule cannot be carried out on this message.
std::expected<uint64_t, std::string> change_field(const Mutation& rule, google::protobuf::Message& message);

}  // namespace ztape::replay
