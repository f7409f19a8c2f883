#include "http2/http1_calls.h"

#include <utility>

namespace ztape::http2 {

Http1Calls::Http1Calls(ConnectionId connection, const CallBuilderOptions& options, OnCall on_call)
    : connection_(connection), options_(options), on_call_(std::move(on_call)), reader_(*this) {}

void Http1Calls::on_head(Direction direction, const Http1Head& head, int64_t time_ns) {
  if (direction == Direction::client_to_server) {
    auto& opened = open_.emplace_back();
    auto& call = opened.call;
    call.connection = connection_;
    call.stream = ++requests_;
    call.http_version = head.version;
    call.content = content_of(head.fields);
    call.start_ns = time_ns;
    call.path = head.target;
    if (options_.keep_headers) {
      call.request_headers = {{":method", head.method}, {":path", head.target}};
      call.request_headers.insert(call.request_headers.end(), head.fields.begin(), head.fields.end());
    }
    opened.bodies[0].emplace(direction, head.fields, options_);
    return;
  }
  if (head.upgrade) {
    const auto* protocol = find_header(head.fields, "upgrade");
    changed_to_ = protocol ? *protocol : "another protocol";
  }
  if (open_.empty()) return;
  auto& opened = open_.front();
  opened.call.first_byte_ns = time_ns;
  opened.call.http_status = head.status;
  if (options_.keep_headers) opened.call.response_headers = head.fields;
  const auto& body = opened.bodies[1].emplace(direction, head.fields, options_);
  if (body.has_messages()) {
    read_grpc_status(head.fields, opened.call);  // an error without a message may have its trailers among the headers
  } else if (opened.call.content != Content::other) {
    opened.call.unreadable_reason = why_not_grpc(head.fields);
  }
}

void Http1Calls::on_body(Direction direction, std::span<const uint8_t> piece, int64_t time_ns) {
  if (open_.empty()) return;
  auto& opened = direction == Direction::client_to_server ? open_.back() : open_.front();
  if (auto& body = opened.bodies[index(direction)]) body->read(opened.call, piece, time_ns);
}

void Http1Calls::on_end(Direction direction, int64_t time_ns) {
  if (open_.empty()) return;
  if (direction == Direction::client_to_server) {
    open_.back().call.request_end_ns = time_ns;
    return;
  }
  if (changed_to_ == "h2c") {  // the request is stream 1 from here on
    open_.pop_front();
    return;
  }
  auto& call = open_.front().call;
  call.ended_by = EndedBy::trailers;
  call.end_ns = time_ns;
  emit();
}

void Http1Calls::on_lost(Direction direction, const std::string& reason) {
  lost_ = std::string(name(direction)) + ": " + reason;
  for (auto& opened : open_) {
    if (opened.call.unreadable_reason.empty()) opened.call.unreadable_reason = lost_;
  }
}

void Http1Calls::emit() {
  auto opened = std::move(open_.front());
  open_.pop_front();
  for (auto& body : opened.bodies) {
    if (body) body->finish(opened.call);
  }
  on_call_(std::move(opened.call));
}

void Http1Calls::close(EndedBy how, int64_t time_ns) {
  while (!open_.empty()) {
    open_.front().call.ended_by = how;
    open_.front().call.end_ns = how == EndedBy::still_open ? -1 : time_ns;
    emit();
  }
}

}  // namespace ztape::http2
