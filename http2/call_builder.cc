#include "http2/call_builder.h"

#include <iterator>
#include <utility>

#include "http2/call_builder_impl.h"

namespace ztape::http2 {

CallBuilder::CallBuilder(ConnectionId connection, CallBuilderOptions options, OnCall on_call)
    : impl_(std::make_unique<Impl>()) {
  impl_->connection = connection;
  impl_->options = options;
  impl_->on_call = std::move(on_call);
}

CallBuilder::~CallBuilder() = default;

void CallBuilder::set_watcher(CallWatcher* watcher) {
  impl_->watcher = watcher;
}

void CallBuilder::server_ended(int64_t time_ns) {
  for (auto& [stream, opened] : impl_->open) impl_->end(opened, EndedBy::server_close, time_ns);
}

void CallBuilder::close(EndedBy how, int64_t time_ns) {
  for (auto at = impl_->open.begin(); at != impl_->open.end();) {
    impl_->end(at->second, how, how == EndedBy::still_open ? -1 : time_ns);
    at = impl_->emit(at);
  }
}

void CallBuilder::settle(int64_t time_ns) {
  for (auto at = impl_->open.begin(); at != impl_->open.end();) {
    const auto& opened = at->second;
    at = opened.ended && opened.call.end_ns < time_ns ? impl_->emit(at) : std::next(at);
  }
}

void CallBuilder::on_frame(const Frame& frame) {
  auto* opened = frame.type == kHeaders ? impl_->find_or_begin(frame) : impl_->find(frame);
  if (!opened) return;
  if (impl_->options.keep_frames) opened->call.frames.push_back(frame);
  if (frame.type == kData && (frame.flags & kEndStream)) {
    if (frame.direction == Direction::client_to_server) {
      Impl::end_request(*opened, frame.last_byte_ns);
    } else {
      opened->silent[index(frame.direction)] = true;
      impl_->end(*opened, EndedBy::trailers, frame.last_byte_ns);
    }
  }
  impl_->emit_if_over(frame.stream);
}

void CallBuilder::on_headers(const Frame& frame, const HeaderList& fields, bool end_stream, bool readable) {
  impl_->client_headers_seen = true;
  if (frame.type != kHeaders) return;
  auto* opened = impl_->find_or_begin(frame);
  if (!opened) return;
  Call& call = opened->call;
  if (frame.direction == Direction::server_to_client) {
    impl_->read_response_headers(*opened, frame, fields, end_stream);
    return;
  }
  if (end_stream) Impl::end_request(*opened, frame.last_byte_ns);
  if (call.start_ns >= 0) return;  // a client's trailers, which gRPC does not have
  call.start_ns = frame.last_byte_ns;
  if (impl_->options.keep_headers) call.request_headers = fields;
  if (const auto* path = find_header(fields, ":path"); path && readable) call.path = *path;
  impl_->tell_begun(*opened);
  if (!readable) return;
  impl_->start_body(*opened, Direction::client_to_server, fields);
  if (impl_->options.keep_for_state) impl_->keep_headers_for_state(*opened, Direction::client_to_server, fields);
}

void CallBuilder::on_data(const Frame& frame, std::span<const uint8_t> piece, int64_t time_ns) {
  auto* opened = impl_->find(frame);
  if (!opened) return;
  Call& call = opened->call;
  const bool request = frame.direction == Direction::client_to_server;
  if (auto& body = opened->bodies[index(frame.direction)]) {
    body->read(call, piece, time_ns);
  } else {
    (request ? call.request_tail_bytes : call.response_tail_bytes) += piece.size();
  }
}

void CallBuilder::on_window_update(const Frame& frame, uint32_t increment) {
  const bool of_connection = frame.stream == 0 && frame.direction == Direction::client_to_server;
  if (of_connection && !impl_->client_headers_seen) impl_->client_window_increment += increment;
}

void CallBuilder::on_rst_stream(const Frame& frame, uint32_t error_code) {
  auto* opened = impl_->find(frame);
  if (!opened) return;
  const bool by_client = frame.direction == Direction::client_to_server;
  if (!opened->ended) opened->call.reset_code = error_code;
  if (by_client) Impl::end_request(*opened, frame.last_byte_ns);
  opened->silent[index(frame.direction)] = true;
  impl_->end(*opened, by_client ? EndedBy::client_reset : EndedBy::server_reset, frame.last_byte_ns);
  impl_->linger(frame.stream);
}

void CallBuilder::on_goaway(const Frame& frame, uint32_t last_stream, uint32_t error_code,
                            std::span<const uint8_t> /*debug_bytes*/) {
  // A client's GOAWAY speaks of streams that the server began: of no call.
  if (frame.direction == Direction::client_to_server) return;
  for (auto at = impl_->open.upper_bound(last_stream); at != impl_->open.end();) {
    if (!at->second.ended) at->second.call.reset_code = error_code;
    impl_->end(at->second, EndedBy::goaway, frame.last_byte_ns);
    at = impl_->emit(at);
  }
}

void CallBuilder::on_unreadable(const Unreadable& lost) {
  const auto text = std::string(name(lost.direction)) + (lost.headers_only ? " has no headers" : " has no frames") +
                    " from offset " + std::to_string(lost.offset) + " on: " + lost.reason;
  if (impl_->unreadable_reason.empty()) impl_->unreadable_reason = text;
  if (lost.direction == Direction::client_to_server && !lost.headers_only) impl_->requests_readable = false;
  const bool end_unseen = lost.direction == Direction::server_to_client && !lost.headers_only;
  if (end_unseen) impl_->answers_readable = false;
  for (auto& [stream, opened] : impl_->open) {
    Impl::note(opened.call, text);
    if (!end_unseen || opened.ended) continue;
    opened.call.end_unseen = true;
    impl_->tell_over(opened);
  }
}

}  // namespace ztape::http2
