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
  capture::Record record;
  auto& out = *record.mutable_headers();
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
  on_record_(record);
}

}  // namespace ztape::http2
