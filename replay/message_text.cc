#include "replay/message_text.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "proto/message_diff.h"

namespace ztape::replay {
namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;

constexpr std::size_t kShownBytes = 32;  // of one bytes field: a hash is whole

std::unique_ptr<pb::Message> parse(const pb::Descriptor* type, std::string_view body) {
  if (!type) return nullptr;
  std::unique_ptr<pb::Message> message(pb::MessageFactory::generated_factory()->GetPrototype(type)->New());
  if (!message->ParseFromArray(body.data(), static_cast<int>(body.size()))) return nullptr;
  return message;
}

std::string hex(std::string_view bytes, std::size_t max_bytes) {
  return to_hex(bytes.substr(0, max_bytes)) + (bytes.size() > max_bytes ? "..." : "");
}

// Hashes the way people read them, as everywhere.
std::string bytes_text(const FieldDescriptor* field, std::string_view value) {
  if (!shown_reversed(field->name())) return hex(value, kShownBytes);
  return hex(std::string(value.rbegin(), value.rend()), kShownBytes);
}

std::string quoted(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte >= 0x20 && byte < 0x7f) {
      text += c;
    } else {
      text += "\\x" + to_hex({&c, 1});
    }
  }
  return text + "\"";
}

// One value of a field; `element` counts in a repeated field, -1 otherwise.
struct Leaf {
  std::optional<double> number;
  std::string text;
};

Leaf leaf_of(const pb::Message& message, const FieldDescriptor* field, int element) {
  const auto* reflection = message.GetReflection();
  const auto integer = [](auto value) { return Leaf{static_cast<double>(value), std::to_string(value)}; };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return integer(element < 0 ? reflection->GetInt32(message, field)
                                 : reflection->GetRepeatedInt32(message, field, element));
    case FieldDescriptor::CPPTYPE_INT64:
      return integer(element < 0 ? reflection->GetInt64(message, field)
                                 : reflection->GetRepeatedInt64(message, field, element));
    case FieldDescriptor::CPPTYPE_UINT32:
      return integer(element < 0 ? reflection->GetUInt32(message, field)
                                 : reflection->GetRepeatedUInt32(message, field, element));
    case FieldDescriptor::CPPTYPE_UINT64:
      return integer(element < 0 ? reflection->GetUInt64(message, field)
                                 : reflection->GetRepeatedUInt64(message, field, element));
    case FieldDescriptor::CPPTYPE_BOOL: {
      const bool value =
          element < 0 ? reflection->GetBool(message, field) : reflection->GetRepeatedBool(message, field, element);
      return {std::nullopt, value ? "true" : "false"};
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int value = element < 0 ? reflection->GetEnumValue(message, field)
                                    : reflection->GetRepeatedEnumValue(message, field, element);
      const auto* named = field->enum_type()->FindValueByNumber(value);
      return {std::nullopt, named ? std::string(named->name()) : std::to_string(value)};
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string scratch;
      const auto& value = element < 0 ? reflection->GetStringReference(message, field, &scratch)
                                      : reflection->GetRepeatedStringReference(message, field, element, &scratch);
      const bool bytes = field->type() == FieldDescriptor::TYPE_BYTES;
      return {std::nullopt, bytes ? bytes_text(field, value) : quoted(value)};
    }
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_MESSAGE: break;  // no floating point in these protocols; messages are walked
  }
  return {};
}

void print(const pb::Message& message, std::string& text, std::size_t max_bytes) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  text += '{';
  bool first = true;
  for (const auto* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (text.size() > max_bytes) {
        text += first ? "..." : ", ...";
        text += '}';
        return;
      }
      if (!first) text += ", ";
      first = false;
      text += field->name() + ": ";
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        print(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                   : reflection->GetMessage(message, field),
              text, max_bytes);
      } else {
        text += leaf_of(message, field, field->is_repeated() ? i : -1).text;
      }
    }
  }
  if (const int unknown = reflection->GetUnknownFields(message).field_count(); unknown > 0) {
    text += (first ? "" : ", ") + std::to_string(unknown) + " unknown fields";
  }
  text += '}';
}

void flatten(const pb::Message& message, const std::string& prefix, std::map<std::string, Leaf>& leaves) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      auto path = prefix + field->name();
      if (field->is_repeated()) path += '[' + std::to_string(i) + ']';
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        flatten(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                     : reflection->GetMessage(message, field),
                path + '.', leaves);
      } else {
        leaves.emplace(std::move(path), leaf_of(message, field, field->is_repeated() ? i : -1));
      }
    }
  }
}

double text_distance(std::string_view a, std::string_view b) {
  if (a == b) return 0;
  const auto longest = std::max(a.size(), b.size());
  const auto shortest = std::min(a.size(), b.size());
  std::size_t prefix = 0;
  while (prefix < shortest && a[prefix] == b[prefix]) ++prefix;
  std::size_t suffix = 0;
  while (suffix < shortest - prefix && a[a.size() - 1 - suffix] == b[b.size() - 1 - suffix]) ++suffix;
  return 1 - static_cast<double>(prefix + suffix) / static_cast<double>(longest);
}

double leaf_distance(const Leaf& a, const Leaf& b) {
  if (!a.number || !b.number) return text_distance(a.text, b.text);
  constexpr double kLargest = 64 * 0.6931471805599453;  // ln 2^64
  return std::log1p(std::fabs(*a.number - *b.number)) / kLargest;
}

}  // namespace

std::string short_text(const pb::Descriptor* type, std::string_view body, std::size_t max_bytes) {
  std::string text;
  if (const auto message = parse(type, body)) {
    print(*message, text, max_bytes);
    return text;
  }
  text = std::to_string(body.size()) + " bytes";
  if (!body.empty()) text += ' ' + hex(body, max_bytes / 2);
  return text;
}

double distance(const pb::Descriptor* type, std::string_view a, std::string_view b) {
  if (a == b) return 0;
  const auto first = parse(type, a);
  const auto second = parse(type, b);
  if (!first || !second) return text_distance(a, b);
  std::map<std::string, Leaf> ours;
  std::map<std::string, Leaf> theirs;
  flatten(*first, "", ours);
  flatten(*second, "", theirs);
  double sum = 0;
  for (const auto& [path, leaf] : ours) {
    const auto found = theirs.find(path);
    sum += found == theirs.end() ? 1 : leaf_distance(leaf, found->second);
  }
  for (const auto& [path, leaf] : theirs) sum += ours.contains(path) ? 0 : 1;
  return sum;
}

}  // namespace ztape::replay
