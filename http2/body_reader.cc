#include "http2/body_reader.h"

#include <algorithm>
#include <vector>

#include "http2/base64.h"

namespace ztape::http2 {
namespace {

std::string encoding_of(const HeaderList& fields) {
  const auto* encoding = find_header(fields, "grpc-encoding");
  return encoding ? *encoding : "identity";
}

void note(Call& call, const std::string& reason) {
  if (call.unreadable_reason.empty()) call.unreadable_reason = reason;
}

// "grpc-status: 0\r\ngrpc-message: ...\r\n"
HeaderList fields_of(std::string_view text) {
  HeaderList fields;
  while (!text.empty()) {
    const auto end = text.find("\r\n");
    const auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 2);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    auto value = line.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    fields.push_back({lower_case(line.substr(0, colon)), std::string(value)});
  }
  return fields;
}

}  // namespace

BodyReader::BodyReader(Direction direction, const HeaderList& fields, const CallBuilderOptions& options)
    : request_(direction == Direction::client_to_server),
      keep_beginning_(options.not_only_grpc),
      keep_messages_(options.keep_messages),
      keep_headers_(options.keep_headers) {
  const auto content = content_of(fields);
  const bool web = content == Content::grpc_web || content == Content::grpc_web_text;
  if (content == Content::other || (web && !options.not_only_grpc)) return;
  base64_ = content == Content::grpc_web_text;
  messages_.emplace(options.keep_bodies, options.max_message_bytes, encoding_of(fields), web);
}

void BodyReader::read(Call& call, std::span<const uint8_t> bytes, int64_t time_ns) {
  if (keep_beginning_ && message_count(call) == 0) {
    auto& kept = beginning(call);
    const auto room = kKeptBeginningBytes - std::min(kKeptBeginningBytes, kept.size());
    kept.append(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), room));
  }
  if (!messages_) {
    tail_bytes(call) += bytes.size();
    return;
  }
  std::vector<uint8_t> decoded;
  if (base64_) {
    undecoded_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!decode_base64_groups(undecoded_, decoded)) {
      note(call, "the body is no base64, as " + std::string(name(Content::grpc_web_text)) + " has it");
      faulty_ = true;
      base64_ = false;
      messages_.reset();
      return;
    }
    bytes = decoded;
  }
  const auto& fault = messages_->read(bytes, time_ns, [&](Message&& message) { take(call, std::move(message)); });
  if (fault.empty()) return;
  faulty_ = true;
  note(call, fault);
}

void BodyReader::take(Call& call, Message&& message) {
  beginning(call).clear();
  if (message.trailers) {
    auto fields = fields_of(message.body);
    read_grpc_status(fields, call);
    if (keep_headers_) call.trailers = std::move(fields);
    return;
  }
  (request_ ? call.request_bytes : call.response_bytes) += message.length;
  ++message_count(call);
  if (keep_messages_) (request_ ? call.requests : call.responses).push_back(std::move(message));
}

void BodyReader::finish(Call& call) {
  if (!messages_) return;
  tail_bytes(call) += messages_->tail_bytes();
  if (!faulty_) beginning(call).clear();
}

}  // namespace ztape::http2
