#include "http2/index_sink.h"

namespace ztape::http2 {

IndexSink::IndexSink(ConnectionId connection, OnRecord on_record)
    : connection_(connection), on_record_(std::move(on_record)) {}

void IndexSink::on_frame(const Frame& frame) {
  auto& out = *frame_record_.mutable_frame();
  out.set_connection(connection_);
  out.set_direction(static_cast<capture::Direction>(frame.direction));
  out.set_offset(frame.offset);
  out.set_stream(frame.stream);
  out.set_type(frame.type);
  out.set_flags(frame.flags);
  out.set_length(frame.length);
  out.set_first_byte_ns(frame.first_byte_ns);
  out.set_last_byte_ns(frame.last_byte_ns);
  on_record_(frame_record_);
}

void IndexSink::on_headers(const Frame& frame, const HeaderList& fields, bool end_stream, bool readable) {
  if (!readable) return;
  auto& out = *headers_record_.mutable_headers();
  out.clear_fields();
  out.set_connection(connection_);
  out.set_direction(static_cast<capture::Direction>(frame.direction));
  out.set_offset(frame.offset);
  out.set_stream(frame.stream);
  out.set_time_ns(frame.last_byte_ns);
  out.set_end_stream(end_stream);
  for (const auto& field : fields) {
    auto& added = *out.add_fields();
    added.set_name(field.name);
    added.set_value(field.value);
  }
  on_record_(headers_record_);
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
  on_record_(record);
}

}  // namespace ztape::http2
