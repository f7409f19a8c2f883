#include "replay/mutate_field.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace ztape::replay {
namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;
// Holds every value of every integer field, and their sums.
__extension__ typedef __int128 Wide;

struct Range {
  Wide lowest;
  Wide highest;
};

std::optional<Range> range_of(const FieldDescriptor* field) {
  const auto limits = []<typename T>(T) {
    return Range{std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()};
  };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: return limits(int32_t{});
    case FieldDescriptor::CPPTYPE_INT64: return limits(int64_t{});
    case FieldDescriptor::CPPTYPE_UINT32: return limits(uint32_t{});
    case FieldDescriptor::CPPTYPE_UINT64: return limits(uint64_t{});
    default: return std::nullopt;
  }
}

std::optional<Wide> parse_integer(const std::string& text) {
  const char* end = text.data() + text.size();
  if (text.starts_with('-')) {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end) return std::nullopt;
    return value;
  }
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<std::string> parse_hex(const std::string& text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    uint8_t byte = 0;
    const auto [stop, error] = std::from_chars(text.data() + i, text.data() + i + 2, byte, 16);
    if (error != std::errc() || stop != text.data() + i + 2) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::optional<int> parse_enum(const FieldDescriptor* field, const std::string& text) {
  if (const auto* named = field->enum_type()->FindValueByName(text)) return named->number();
  const auto value = parse_integer(text);
  if (!value || *value < std::numeric_limits<int>::lowest() || *value > std::numeric_limits<int>::max()) {
    return std::nullopt;
  }
  return static_cast<int>(*value);
}

Wide get_integer(const pb::Message& message, const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: return reflection->GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64: return reflection->GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_UINT32: return reflection->GetUInt32(message, field);
    default: return reflection->GetUInt64(message, field);
  }
}

void set_integer(pb::Message& message, const FieldDescriptor* field, Wide value) {
  const auto* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: reflection->SetInt32(&message, field, static_cast<int32_t>(value)); break;
    case FieldDescriptor::CPPTYPE_INT64: reflection->SetInt64(&message, field, static_cast<int64_t>(value)); break;
    case FieldDescriptor::CPPTYPE_UINT32: reflection->SetUInt32(&message, field, static_cast<uint32_t>(value)); break;
    default: reflection->SetUInt64(&message, field, static_cast<uint64_t>(value)); break;
  }
}

void set_value(pb::Message& message, const FieldDescriptor* field, const std::string& value) {
  const auto* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: reflection->SetBool(&message, field, value == "true"); break;
    case FieldDescriptor::CPPTYPE_ENUM: reflection->SetEnumValue(&message, field, *parse_enum(field, value)); break;
    case FieldDescriptor::CPPTYPE_STRING:
      reflection->SetString(&message, field, field->type() == FieldDescriptor::TYPE_BYTES ? *parse_hex(value) : value);
      break;
    default: set_integer(message, field, *parse_integer(value)); break;
  }
}

std::expected<uint64_t, std::string> change_leaf(const Mutation& rule, pb::Message& message,
                                                 const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  if (rule.kind == Mutation::Kind::set_field) {
    set_value(message, field, rule.value);
    return 1;
  }
  if (rule.kind == Mutation::Kind::add_to_field) {
    const auto range = *range_of(field);
    const auto sum = get_integer(message, field) + rule.amount;
    if (sum < range.lowest || sum > range.highest) {
      return std::unexpected("'" + field->name() + "' would leave the range of its type");
    }
    set_integer(message, field, sum);
    return 1;
  }
  auto bytes = reflection->GetString(message, field);
  if (bytes.empty()) return 0;
  std::reverse(bytes.begin(), bytes.end());
  reflection->SetString(&message, field, bytes);
  return 1;
}

std::expected<uint64_t, std::string> walk(const Mutation& rule, pb::Message& message, std::size_t depth) {
  const auto* field = rule.path[depth];
  if (depth + 1 == rule.path.size()) return change_leaf(rule, message, field);
  const auto* reflection = message.GetReflection();
  if (!field->is_repeated()) {
    // A part that is not there is not made up.
    if (!reflection->HasField(message, field)) return 0;
    return walk(rule, *reflection->MutableMessage(&message, field), depth + 1);
  }
  uint64_t changed = 0;
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    const auto part = walk(rule, *reflection->MutableRepeatedMessage(&message, field, i), depth + 1);
    if (!part) return part;
    changed += *part;
  }
  return changed;
}

}  // namespace

std::string check_field(const Mutation& rule) {
  const auto* field = rule.path.back();
  const auto named = "'" + field->name() + "' ";
  if (field->is_repeated()) return named + "is repeated: only a field of its messages can be changed";
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return named + "is a message: name one of its fields";
  if (rule.kind == Mutation::Kind::reverse_field) {
    return field->type() == FieldDescriptor::TYPE_BYTES ? "" : named + "is not a bytes field";
  }
  const auto range = range_of(field);
  if (rule.kind == Mutation::Kind::add_to_field) return range ? "" : named + "is not an integer";
  auto wrong = "'" + rule.value + "' is no value for " + named + "(" + field->type_name() + ")";
  if (range) {
    const auto value = parse_integer(rule.value);
    return value && *value >= range->lowest && *value <= range->highest ? "" : wrong;
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    return rule.value == "true" || rule.value == "false" ? "" : wrong;
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) return parse_enum(field, rule.value) ? "" : wrong;
  if (field->type() == FieldDescriptor::TYPE_BYTES) return parse_hex(rule.value) ? "" : wrong + ": hex is needed";
  if (field->type() == FieldDescriptor::TYPE_STRING) return "";
  return wrong;
}

std::expected<uint64_t, std::string> change_field(const Mutation& rule, pb::Message& message) {
  return walk(rule, message, 0);
}

}  // namespace ztape::replay
