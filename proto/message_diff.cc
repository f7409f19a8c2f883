#include "proto/message_diff.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <memory>
#include <utility>

namespace ztape {
namespace {

namespace pb = google::protobuf;

constexpr std::size_t kExcerptBytes = 16;

// One scalar of a message, or one element of a repeated field (index >= 0).
FieldValue scalar(const pb::Message& message, const pb::FieldDescriptor* field, int index) {
  const auto& reflection = *message.GetReflection();
  const bool element = index >= 0;
#define VALUE(Type) \
  (element ? reflection.GetRepeated##Type(message, field, index) : reflection.Get##Type(message, field))
  switch (field->cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_BOOL: return VALUE(Bool);
    case pb::FieldDescriptor::CPPTYPE_INT32: return int64_t{VALUE(Int32)};
    case pb::FieldDescriptor::CPPTYPE_INT64: return int64_t{VALUE(Int64)};
    case pb::FieldDescriptor::CPPTYPE_UINT32: return uint64_t{VALUE(UInt32)};
    case pb::FieldDescriptor::CPPTYPE_UINT64: return uint64_t{VALUE(UInt64)};
    case pb::FieldDescriptor::CPPTYPE_FLOAT: return double{VALUE(Float)};
    case pb::FieldDescriptor::CPPTYPE_DOUBLE: return double{VALUE(Double)};
    case pb::FieldDescriptor::CPPTYPE_ENUM: {
      const int number = VALUE(EnumValue);
      const auto* value = field->enum_type()->FindValueByNumber(number);
      return value ? FieldValue(value->name()) : FieldValue(int64_t{number});
    }
    case pb::FieldDescriptor::CPPTYPE_STRING: {
      std::string text = VALUE(String);
      if (field->type() != pb::FieldDescriptor::TYPE_BYTES) return text;
      if (shown_reversed(field->name())) std::reverse(text.begin(), text.end());
      return to_hex(text);
    }
    case pb::FieldDescriptor::CPPTYPE_MESSAGE: break;
  }
#undef VALUE
  return std::monostate{};
}

FieldValue unknown_value(const pb::UnknownField& field) {
  switch (field.type()) {
    case pb::UnknownField::TYPE_VARINT: return uint64_t{field.varint()};
    case pb::UnknownField::TYPE_FIXED32: return uint64_t{field.fixed32()};
    case pb::UnknownField::TYPE_FIXED64: return uint64_t{field.fixed64()};
    case pb::UnknownField::TYPE_LENGTH_DELIMITED: return to_hex(field.length_delimited());
    case pb::UnknownField::TYPE_GROUP: {
      std::string bytes;
      field.group().SerializeToString(&bytes);
      return to_hex(bytes);
    }
  }
  return std::monostate{};
}

class Differ {
 public:
  explicit Differ(std::vector<FieldDifference>& out) : out_(out) {}

  // Either may be null: that side has no such message.
  void messages(const pb::Descriptor* type, const pb::Message* left, const pb::Message* right,
                const std::string& prefix) {
    for (int i = 0; i < type->field_count(); ++i) field(type->field(i), left, right, prefix);
    unknown(left, right, prefix);
  }

 private:
  void add(std::string path, FieldValue left, FieldValue right) {
    if (out_.size() < kMaxFieldDifferences) out_.push_back({std::move(path), std::move(left), std::move(right)});
  }

  void field(const pb::FieldDescriptor* field, const pb::Message* left, const pb::Message* right,
             const std::string& prefix) {
    const std::string path = prefix + field->name();
    if (field->is_repeated()) return repeated(field, left, right, path);
    if (field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) return child(field, left, right, path);
    // A side without the enclosing message has no value here, and one with the default then is nothing to tell.
    const bool left_has = left && left->GetReflection()->HasField(*left, field);
    const bool right_has = right && right->GetReflection()->HasField(*right, field);
    if (!left_has && !right_has) return;
    auto left_value = left ? scalar(*left, field, -1) : FieldValue();
    auto right_value = right ? scalar(*right, field, -1) : FieldValue();
    if (left_value != right_value) add(path, std::move(left_value), std::move(right_value));
  }

  void child(const pb::FieldDescriptor* field, const pb::Message* left, const pb::Message* right,
             const std::string& path) {
    const auto get = [&](const pb::Message* message) -> const pb::Message* {
      if (!message || !message->GetReflection()->HasField(*message, field)) return nullptr;
      return &message->GetReflection()->GetMessage(*message, field);
    };
    const auto* left_child = get(left);
    const auto* right_child = get(right);
    if (!left_child && !right_child) return;
    if (!left_child || !right_child) {
      const auto presence = [](bool there) { return there ? FieldValue(std::string("present")) : FieldValue(); };
      add(path, presence(left_child), presence(right_child));
    }
    messages(field->message_type(), left_child, right_child, path + ".");
  }

  void repeated(const pb::FieldDescriptor* field, const pb::Message* left, const pb::Message* right,
                const std::string& path) {
    const int left_size = left ? left->GetReflection()->FieldSize(*left, field) : 0;
    const int right_size = right ? right->GetReflection()->FieldSize(*right, field) : 0;
    if (left_size != right_size) {
      add(path + "[]", static_cast<uint64_t>(left_size), static_cast<uint64_t>(right_size));
    }
    const bool of_messages = field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE;
    for (int i = 0; i < std::max(left_size, right_size) && out_.size() < kMaxFieldDifferences; ++i) {
      const std::string element = path + "[" + std::to_string(i) + "]";
      if (of_messages) {
        const auto at = [&](const pb::Message* message, int size) -> const pb::Message* {
          return i < size ? &message->GetReflection()->GetRepeatedMessage(*message, field, i) : nullptr;
        };
        messages(field->message_type(), at(left, left_size), at(right, right_size), element + ".");
      } else {
        auto left_value = i < left_size ? scalar(*left, field, i) : FieldValue();
        auto right_value = i < right_size ? scalar(*right, field, i) : FieldValue();
        if (left_value != right_value) add(element, std::move(left_value), std::move(right_value));
      }
    }
  }

  void unknown(const pb::Message* left, const pb::Message* right, const std::string& prefix) {
    // By number; the n-th value of a number is compared with the n-th.
    std::map<int, std::pair<std::vector<FieldValue>, std::vector<FieldValue>>> by_number;
    const auto collect = [](const pb::Message* message, const auto& put) {
      if (!message) return;
      const auto& fields = message->GetReflection()->GetUnknownFields(*message);
      for (int i = 0; i < fields.field_count(); ++i) put(fields.field(i).number(), unknown_value(fields.field(i)));
    };
    collect(left, [&](int number, FieldValue value) { by_number[number].first.push_back(std::move(value)); });
    collect(right, [&](int number, FieldValue value) { by_number[number].second.push_back(std::move(value)); });
    for (auto& [number, values] : by_number) {
      auto& [left_values, right_values] = values;
      const auto count = std::max(left_values.size(), right_values.size());
      left_values.resize(count);
      right_values.resize(count);
      for (std::size_t i = 0; i < count; ++i) {
        if (left_values[i] == right_values[i]) continue;
        std::string path = prefix;
        path += "#" + std::to_string(number);
        if (count > 1) path += "[" + std::to_string(i) + "]";
        add(std::move(path), left_values[i], right_values[i]);
      }
    }
  }

  std::vector<FieldDifference>& out_;
};

FieldDifference first_byte(std::string_view left, std::string_view right) {
  const auto [at, unused] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  const auto offset = static_cast<std::size_t>(at - left.begin());
  return {"bytes[" + std::to_string(offset) + "]", to_hex(left.substr(offset, kExcerptBytes)),
          to_hex(right.substr(offset, kExcerptBytes))};
}

}  // namespace

std::vector<FieldDifference> diff_messages(const pb::Descriptor* type, std::string_view left, std::string_view right) {
  std::vector<FieldDifference> found;
  if (left == right) return found;
  if (type) {
    pb::DynamicMessageFactory factory;
    const auto* prototype = factory.GetPrototype(type);
    const std::unique_ptr<pb::Message> left_message(prototype->New());
    const std::unique_ptr<pb::Message> right_message(prototype->New());
    if (left_message->ParseFromArray(left.data(), static_cast<int>(left.size())) &&
        right_message->ParseFromArray(right.data(), static_cast<int>(right.size()))) {
      Differ(found).messages(type, left_message.get(), right_message.get(), "");
    }
  }
  if (found.empty()) found.push_back(first_byte(left, right));
  return found;
}

bool shown_reversed(std::string_view field_name) {
  static constexpr std::array<std::string_view, 5> kNames{"hash", "prevHash", "txid", "completingBlockHash",
                                                          "prevoutTxid"};
  return std::find(kNames.begin(), kNames.end(), field_name) != kNames.end();
}

std::string to_hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[static_cast<uint8_t>(byte) & 0xf];
  }
  return text;
}

std::string path_without_indexes(std::string_view path) {
  std::string text;
  bool inside = false;
  for (const char c : path) {
    if (c == ']') inside = false;
    if (!inside) text += c;
    if (c == '[') inside = true;
  }
  return text;
}

}  // namespace ztape
