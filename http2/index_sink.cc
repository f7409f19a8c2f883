#include "http2/index_sink.h"

#include <algorithm>
#include <string>

#include "proto/capture.pb.h"
#include "proto/wire_fields.h"

namespace ztape::http2 {
namespace {

uint8_t* put_text(int number, const std::string& text, uint8_t* at) {
  if (text.empty()) return at;
  return std::copy(text.begin(), text.end(), put_length_head(number, text.size(), at));
}

std::size_t text_size(const std::string& text) {
  return text.empty() ? 0 : length_field_size(text.size());
}

std::size_t encoded_size(const HeaderField& field) {
  return text_size(field.name) + text_size(field.value);
}

}  // namespace

IndexSink::IndexSink(ConnectionId connection, OnRecord on_record)
    : connection_(connection), on_record_(std::move(on_record)) {}

uint8_t* IndexSink::room(std::size_t size) {
  bytes_.resize(size);
  return bytes_.data();
}

void IndexSink::on_frame(const Frame& frame) {
  using Out = capture::Frame;
  constexpr std::size_t kMostBytes = 9 * 11;  // nine fields, each a tag and a varint
  uint8_t body[kMostBytes];
  uint8_t* end = put_varint_field(Out::kConnectionFieldNumber, connection_, body);
  end = put_varint_field(Out::kDirectionFieldNumber, static_cast<uint64_t>(frame.direction), end);
  end = put_varint_field(Out::kOffsetFieldNumber, frame.offset, end);
  end = put_varint_field(Out::kStreamFieldNumber, frame.stream, end);
  end = put_varint_field(Out::kTypeFieldNumber, frame.type, end);
  end = put_varint_field(Out::kFlagsFieldNumber, frame.flags, end);
  end = put_varint_field(Out::kLengthFieldNumber, frame.length, end);
  end = put_varint_field(Out::kFirstByteNsFieldNumber, static_cast<uint64_t>(frame.first_byte_ns), end);
  end = put_varint_field(Out::kLastByteNsFieldNumber, static_cast<uint64_t>(frame.last_byte_ns), end);
  const auto size = static_cast<std::size_t>(end - body);
  uint8_t* at = room(length_field_size(size));
  std::copy_n(body, size, put_length_head(capture::Record::kFrameFieldNumber, size, at));
  on_record_({.bytes = bytes_, .first_ns = frame.first_byte_ns, .last_ns = frame.last_byte_ns});
}

void IndexSink::on_headers(const Frame& frame, const HeaderList& fields, bool end_stream, bool readable) {
  if (!readable) return;
  using Out = capture::Headers;
  const auto direction = static_cast<uint64_t>(frame.direction);
  const auto time = static_cast<uint64_t>(frame.last_byte_ns);
  std::size_t size = varint_field_size(connection_) + varint_field_size(direction) + varint_field_size(frame.offset) +
                     varint_field_size(frame.stream) + varint_field_size(time) + varint_field_size(end_stream);
  for (const auto& field : fields) size += length_field_size(encoded_size(field));
  uint8_t* at = room(length_field_size(size));
  at = put_length_head(capture::Record::kHeadersFieldNumber, size, at);
  at = put_varint_field(Out::kConnectionFieldNumber, connection_, at);
  at = put_varint_field(Out::kDirectionFieldNumber, direction, at);
  at = put_varint_field(Out::kOffsetFieldNumber, frame.offset, at);
  at = put_varint_field(Out::kStreamFieldNumber, frame.stream, at);
  at = put_varint_field(Out::kTimeNsFieldNumber, time, at);
  at = put_varint_field(Out::kEndStreamFieldNumber, end_stream, at);
  for (const auto& field : fields) {
    at = put_length_head(Out::kFieldsFieldNumber, encoded_size(field), at);
    at = put_text(capture::HeaderField::kNameFieldNumber, field.name, at);
    at = put_text(capture::HeaderField::kValueFieldNumber, field.value, at);
  }
  on_record_({.bytes = bytes_, .first_ns = frame.last_byte_ns, .last_ns = frame.last_byte_ns});
}

void IndexSink::on_unreadable(const Unreadable& lost) {
  capture::Record record;
  auto& out = *record.mutable_connection_state();
  out.set_connection(connection_);
  out.set_time_ns(lost.time_ns);
  auto& state =
      lost.direction == Direction::client_to_server ? *out.mutable_client_to_server() : *out.mutable_server_to_client();
  state.set_offset(lost.offset);
  state.set_readable(lost.headers_only);
  state.set_hpack_known(false);
  state.set_unreadable_reason(lost.reason);
  const std::size_t size = record.ByteSizeLong();
  record.SerializeToArray(room(size), static_cast<int>(size));
  on_record_({.bytes = bytes_, .first_ns = lost.time_ns, .last_ns = lost.time_ns});
}

}  // namespace ztape::http2
