#include "report/message_words.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "http2/first_bytes.h"
#include "proto/message_diff.h"
#include "report/text.h"

namespace ztape::report {
namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;
using Json = nlohmann::ordered_json;

constexpr std::size_t kShownBytes = 32;    // of a field of bytes in text: a hash is whole
constexpr std::size_t kShownText = 200;    // of a string
constexpr std::size_t kMostFields = 1000;  // of different numbers, in what has no type
constexpr int kDeepest = 20;               // of what may be a message or not

// nlohmann's binary values are what tells bytes from text until they are written.
Json bytes_value(std::string_view bytes, bool reversed) {
  Json::binary_t::container_type out(bytes.begin(), bytes.end());
  if (reversed) std::ranges::reverse(out);
  return Json::binary(std::move(out));
}

bool is_text(std::string_view bytes) {
  return !bytes.empty() && escaped(bytes) == bytes;
}

Json tree_of(const pb::UnknownFieldSet& fields, int depth);

// Of a length-delimited field without a type: text if it reads as such, a message if it parses as one, or bytes.
Json guess(const std::string& bytes, int depth) {
  if (is_text(bytes)) return bytes;
  pb::UnknownFieldSet fields;
  if (!bytes.empty() && depth < kDeepest && fields.ParseFromString(bytes) && !fields.empty()) {
    return tree_of(fields, depth + 1);
  }
  return bytes_value(bytes, false);
}

// A number that comes again is a list.
void put(Json& tree, const std::string& key, Json value) {
  if (!tree.contains(key)) {
    if (tree.size() > kMostFields) return;
    if (tree.size() == kMostFields) value = "more than 1000 different fields";
    tree[key] = std::move(value);
    return;
  }
  auto& there = tree[key];
  if (!there.is_array()) there = Json::array({std::move(there)});
  there.push_back(std::move(value));
}

void add_unknown(Json& tree, const pb::UnknownFieldSet& fields, const std::string& prefix, int depth) {
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto& field = fields.field(i);
    const auto key = prefix + std::to_string(field.number());
    switch (field.type()) {
      case pb::UnknownField::TYPE_VARINT: put(tree, key, field.varint()); break;
      case pb::UnknownField::TYPE_FIXED32: put(tree, key, field.fixed32()); break;
      case pb::UnknownField::TYPE_FIXED64: put(tree, key, field.fixed64()); break;
      case pb::UnknownField::TYPE_LENGTH_DELIMITED: put(tree, key, guess(field.length_delimited(), depth)); break;
      case pb::UnknownField::TYPE_GROUP: put(tree, key, tree_of(field.group(), depth + 1)); break;
    }
  }
}

Json tree_of(const pb::UnknownFieldSet& fields, int depth) {
  Json tree = Json::object();
  add_unknown(tree, fields, "", depth);
  return tree;
}

Json tree_of(const pb::Message& message);

// `element` of a repeated field; -1 of one that is not.
Json value_of(const pb::Message& message, const FieldDescriptor* field, int element) {
  const auto* reflection = message.GetReflection();
  const auto get = [&](auto one, auto repeated) {
    return element < 0 ? (reflection->*one)(message, field) : (reflection->*repeated)(message, field, element);
  };
  using R = pb::Reflection;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: return get(&R::GetInt32, &R::GetRepeatedInt32);
    case FieldDescriptor::CPPTYPE_INT64: return get(&R::GetInt64, &R::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT32: return get(&R::GetUInt32, &R::GetRepeatedUInt32);
    case FieldDescriptor::CPPTYPE_UINT64: return get(&R::GetUInt64, &R::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_FLOAT: return get(&R::GetFloat, &R::GetRepeatedFloat);
    case FieldDescriptor::CPPTYPE_DOUBLE: return get(&R::GetDouble, &R::GetRepeatedDouble);
    case FieldDescriptor::CPPTYPE_BOOL: return get(&R::GetBool, &R::GetRepeatedBool);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = get(&R::GetEnumValue, &R::GetRepeatedEnumValue);
      const auto* named = field->enum_type()->FindValueByNumber(number);
      return named ? Json(named->name()) : Json(number);
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string text = get(&R::GetString, &R::GetRepeatedString);
      if (field->type() == FieldDescriptor::TYPE_BYTES) return bytes_value(text, shown_reversed(field->name()));
      return text;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return tree_of(element < 0 ? reflection->GetMessage(message, field)
                                 : reflection->GetRepeatedMessage(message, field, element));
  }
  return {};
}

Json tree_of(const pb::Message& message) {
  Json tree = Json::object();
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (!field->is_repeated()) {
      tree[field->name()] = value_of(message, field, -1);
      continue;
    }
    auto& list = tree[field->name()] = Json::array();
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) list.push_back(value_of(message, field, i));
  }
  add_unknown(tree, reflection->GetUnknownFields(message), "#", 0);
  return tree;
}

// null: it is no message.
Json tree_of(const pb::Descriptor* type, std::string_view body) {
  const auto size = static_cast<int>(body.size());
  if (type) {
    const std::unique_ptr<pb::Message> message(pb::MessageFactory::generated_factory()->GetPrototype(type)->New());
    if (message->ParseFromArray(body.data(), size)) return tree_of(*message);
    return {};
  }
  pb::UnknownFieldSet fields;
  if (!fields.ParseFromArray(body.data(), size)) return {};
  return tree_of(fields, 0);
}

std::string_view as_text(const Json::binary_t& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_text(const Json& value, std::string& out, std::size_t most) {
  if (value.is_object()) {
    out += '{';
    bool first = true;
    for (const auto& [key, each] : value.items()) {
      if (!first) out += ", ";
      first = false;
      if (out.size() >= most) {
        out += "...";
        break;
      }
      out += key + ": ";
      write_text(each, out, most);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += ", ";
      if (out.size() >= most) {
        out += "... (" + count(value.size()) + " in all)";
        break;
      }
      write_text(value[i], out, most);
    }
    out += ']';
  } else if (value.is_binary()) {
    const auto bytes = as_text(value.get_binary());
    out += bytes.empty() ? "0 bytes" : to_hex(bytes.substr(0, kShownBytes));
    if (bytes.size() > kShownBytes) out += "... (" + byte_count(bytes.size()) + ")";
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    std::string quoted;
    for (const char c : text.substr(0, kShownText)) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
    out += '"' + escaped(quoted) + '"';
    if (text.size() > kShownText) out += "... (" + byte_count(text.size()) + ")";
  } else {
    out += value.dump();
  }
}

void bytes_to_hex(Json& value) {
  if (value.is_binary()) {
    value = to_hex(as_text(value.get_binary()));
    return;
  }
  if (value.is_structured()) {
    for (auto& each : value) bytes_to_hex(each);
  }
}

}  // namespace

std::string message_text(const pb::Descriptor* type, std::string_view body, std::size_t most) {
  const auto tree = tree_of(type, body);
  if (tree.is_null()) return counted(body.size(), "byte") + ", not a message: " + http2::hex_dump(body, kShownBytes);
  std::string text;
  write_text(tree, text, most);
  return text;
}

Json message_json(const pb::Descriptor* type, std::string_view body) {
  auto tree = tree_of(type, body);
  if (tree.is_null()) return {{"bytes", to_hex(body)}};
  bytes_to_hex(tree);
  return tree;
}

}  // namespace ztape::report
