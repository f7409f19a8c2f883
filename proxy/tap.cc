#include "proxy/tap.h"

#include "proto/capture.pb.h"

namespace ztape::proxy {
namespace {

constexpr std::size_t kMostCountedPaths = 1000;  // a peer may invent paths without end

capture::Direction to_proto(Direction direction) {
  return direction == Direction::client_to_server ? capture::CLIENT_TO_SERVER : capture::SERVER_TO_CLIENT;
}

}  // namespace

void CallCounts::add(const http2::Call& call) {
  ++total_;
  Key key{.path = call.path, .grpc_status = call.grpc_status, .ended_by = call.ended_by};
  if (rows_.size() >= kMostCountedPaths && !rows_.contains(key)) key.path = "(others)";
  ++rows_[std::move(key)];
}

Tap::Tap(ConnectionId connection, Append append, CallCounts& counts)
    : connection_(connection),
      append_(std::move(append)),
      record_(std::make_unique<capture::Record>()),
      builder_(connection, {.keep_messages = false}, [&counts](http2::Call&& call) { counts.add(call); }),
      reader_(*this) {}

Tap::~Tap() = default;

void Tap::read(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns) {
  now_ns_ = time_ns;
  reader_.read(direction, bytes, time_ns);
}

void Tap::gap(Direction direction, const std::string& reason) {
  reader_.gap(direction, reason);
}

void Tap::end(Direction direction) {
  if (!first_end_) first_end_ = direction;
}

void Tap::close(int64_t time_ns) {
  auto how = http2::EndedBy::still_open;
  if (first_end_ == Direction::client_to_server) how = http2::EndedBy::client_close;
  if (first_end_ == Direction::server_to_client) how = http2::EndedBy::server_close;
  builder_.close(how, time_ns);
}

void Tap::on_frame(const http2::Frame& frame) {
  auto& record = *record_->mutable_frame();
  record.set_connection(connection_);
  record.set_direction(to_proto(frame.direction));
  record.set_offset(frame.offset);
  record.set_stream(frame.stream);
  record.set_type(frame.type);
  record.set_flags(frame.flags);
  record.set_length(frame.length);
  record.set_first_byte_ns(frame.first_byte_ns);
  record.set_last_byte_ns(frame.last_byte_ns);
  append_(*record_);
  builder_.on_frame(frame);
}

void Tap::on_headers(const http2::Frame& frame, const http2::HeaderList& fields, bool end_stream, bool readable) {
  builder_.on_headers(frame, fields, end_stream, readable);
  if (!readable) return;
  capture::Record whole;
  auto& record = *whole.mutable_headers();
  record.set_connection(connection_);
  record.set_direction(to_proto(frame.direction));
  record.set_offset(frame.offset);
  record.set_stream(frame.stream);
  record.set_time_ns(frame.last_byte_ns);
  record.set_end_stream(end_stream);
  for (const auto& field : fields) {
    auto& added = *record.add_fields();
    added.set_name(field.name);
    added.set_value(field.value);
  }
  append_(whole);
}

void Tap::on_data(const http2::Frame& frame, std::span<const uint8_t> piece, int64_t time_ns) {
  builder_.on_data(frame, piece, time_ns);
}

void Tap::on_rst_stream(const http2::Frame& frame, uint32_t error_code) {
  builder_.on_rst_stream(frame, error_code);
}

void Tap::on_goaway(const http2::Frame& frame, uint32_t last_stream, uint32_t error_code,
                    std::span<const uint8_t> debug_bytes) {
  builder_.on_goaway(frame, last_stream, error_code, debug_bytes);
}

// The reason is recorded where it holds from: a reader of the file need not find it out again.
void Tap::on_unreadable(Direction direction, uint64_t offset, const std::string& reason, bool headers_only) {
  builder_.on_unreadable(direction, offset, reason, headers_only);
  capture::Record whole;
  auto& record = *whole.mutable_connection_state();
  record.set_connection(connection_);
  record.set_time_ns(now_ns_);
  auto& state = direction == Direction::client_to_server ? *record.mutable_client_to_server()
                                                         : *record.mutable_server_to_client();
  state.set_offset(offset);
  state.set_readable(headers_only);
  state.set_hpack_known(false);
  state.set_unreadable_reason(reason);
  append_(whole);
}

}  // namespace ztape::proxy
