#include "tests/peer/change.h"

#include <stdexcept>

#include "proto/compact_formats.pb.h"

namespace ztape::peer {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void change_text(std::string& text) {
  if (text.empty()) {
    text.push_back('1');
  } else {
    text[0] = static_cast<char>(text[0] ^ 1);
  }
}

void change_value(Message& message, const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->SetUInt32(&message, field, reflection->GetUInt32(message, field) + 1);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->SetUInt64(&message, field, reflection->GetUInt64(message, field) + 1);
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->SetInt32(&message, field, reflection->GetInt32(message, field) + 1);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->SetInt64(&message, field, reflection->GetInt64(message, field) + 1);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->SetBool(&message, field, !reflection->GetBool(message, field));
    case FieldDescriptor::CPPTYPE_STRING: {
      auto text = reflection->GetString(message, field);
      change_text(text);
      return reflection->SetString(&message, field, std::move(text));
    }
    default: throw std::invalid_argument("--change: cannot change a field of the type of " + field->full_name());
  }
}

}  // namespace

Change Change::parse(const std::string& text) {
  Change change;
  const auto at = text.rfind('@');
  const auto words = text.substr(0, at);
  std::size_t begin = words.find('.');
  if (at == std::string::npos || begin == std::string::npos) {
    throw std::invalid_argument("--change: '" + text + "' is not Type.field@N");
  }
  change.number_ = std::stoull(text.substr(at + 1));
  change.type_ = words.substr(0, begin);
  while (begin != std::string::npos) {
    const auto end = words.find('.', begin + 1);
    change.path_.push_back(words.substr(begin + 1, end == std::string::npos ? end : end - begin - 1));
    begin = end;
  }

  // A word that names nothing must not pass for a change.
  const auto* file = cash::z::wallet::sdk::rpc::CompactBlock::descriptor()->file();
  const auto* type = file->pool()->FindMessageTypeByName(file->package() + "." + change.type_);
  const FieldDescriptor* field = nullptr;
  const std::string in_text = " in '" + text + "'";
  for (const auto& name : change.path_) {
    field = type == nullptr ? nullptr : type->FindFieldByName(name);
    if (field == nullptr) throw std::invalid_argument(std::string("--change: no field ").append(name).append(in_text));
    type = field->message_type();
  }
  if (type != nullptr || field->is_repeated()) {
    throw std::invalid_argument("--change: '" + text + "' does not end at one value");
  }
  return change;
}

void Change::apply(Message& message) {
  if (message.GetDescriptor()->name() != type_ || ++seen_ != number_) return;
  Message* place = &message;
  for (const auto& name : path_) {
    const auto* field = place->GetDescriptor()->FindFieldByName(name);
    const auto* reflection = place->GetReflection();
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return change_value(*place, field);
    if (!field->is_repeated()) {
      place = reflection->MutableMessage(place, field);
    } else if (reflection->FieldSize(*place, field) > 0) {
      place = reflection->MutableRepeatedMessage(place, field, 0);
    } else {
      place = reflection->AddMessage(place, field);
    }
  }
}

void Changes::apply(Message& message) {
  const std::lock_guard lock(mutex_);
  if (auto* block = dynamic_cast<cash::z::wallet::sdk::rpc::CompactBlock*>(&message); block != nullptr && height_) {
    if (block->height() == *height_) block->set_time(block->time() + 1);
  }
  for (auto& change : changes_) change.apply(message);
}

}  // namespace ztape::peer
