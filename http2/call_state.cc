// CallBuilder and its bodies to and from the ConnectionState record of a capture (proto/capture.proto).
#include <algorithm>
#include <array>
#include <string_view>

#include "http2/call_builder_impl.h"

namespace ztape::http2 {
namespace {

// A peer may open streams and send headers without end, and a record has a limit (FORMAT.md).
constexpr std::size_t kMaxKeptHeaderBytes = 16 * 1024;  // of one request or answer; above, those that mean something
constexpr std::size_t kMaxSavedHeaderBytes = 8 * 1024 * 1024;
constexpr int kMaxSavedStreams = 50'000;

constexpr std::array<std::string_view, 8> kMeaningful{":method",    ":status",      ":authority",    "content-type",
                                                      "user-agent", "grpc-timeout", "grpc-encoding", ":scheme"};

std::size_t bytes_of(const HeaderField& field) {
  return field.name.size() + field.value.size() + 32;
}

bool same_but_path(const HeaderList& kept, const HeaderList& fields) {
  auto next = kept.begin();
  for (const auto& field : fields) {
    if (field.name == ":path") continue;
    if (next == kept.end() || !(*next == field)) return false;
    ++next;
  }
  return next == kept.end();
}

HeaderList kept_of(const HeaderList& fields) {
  std::size_t bytes = 0;
  for (const auto& field : fields) bytes += bytes_of(field);
  const bool all = bytes <= kMaxKeptHeaderBytes;
  HeaderList kept;
  for (const auto& field : fields) {
    if (field.name == ":path") continue;
    const bool meaningful =
        field.value.size() <= 1024 && std::ranges::find(kMeaningful, field.name) != kMeaningful.end();
    if (all || meaningful) kept.push_back(field);
  }
  return kept;
}

void add_field(capture::ConnectionState::Body& out, const std::string& name, const std::string& value,
               std::size_t& budget) {
  const std::size_t bytes = name.size() + value.size() + 32;
  if (bytes > budget || value.size() > kMaxKeptHeaderBytes) return;
  budget -= bytes;
  auto& added = *out.add_headers();
  added.set_name(name);
  added.set_value(value);
}

HeaderList fields_of(const capture::ConnectionState::Body& body) {
  HeaderList fields;
  for (const auto& field : body.headers()) fields.push_back({field.name(), field.value()});
  return fields;
}

EndedBy ended_by_of(std::string_view word) {
  for (const auto how : {EndedBy::trailers, EndedBy::client_reset, EndedBy::server_reset, EndedBy::goaway,
                         EndedBy::client_close, EndedBy::server_close}) {
    if (word == name(how)) return how;
  }
  return EndedBy::still_open;
}

}  // namespace

void BodyReader::save(const Call& call, capture::ConnectionState::Body& out) const {
  out.set_messages(request_ ? call.request_message_count : call.response_message_count);
  out.set_message_bytes(request_ ? call.request_bytes : call.response_bytes);
  out.set_other_bytes((request_ ? call.request_tail_bytes : call.response_tail_bytes));
  if (!messages_) return;
  const auto position = messages_->position();
  if (!position) {  // from here on bytes are only counted
    out.set_other_bytes(out.other_bytes() + messages_->tail_bytes());
    return;
  }
  out.set_in_messages(true);
  out.set_message_begun(position->prefix);
  out.set_message_bytes_left(position->body_left);
  if (!position->prefix.empty()) out.set_message_first_byte_ns(position->first_byte_ns);
}

void BodyReader::restore(Call& call, const capture::ConnectionState::Body& body) {
  message_count(call) = body.messages();
  (request_ ? call.request_bytes : call.response_bytes) = body.message_bytes();
  tail_bytes(call) = body.other_bytes();
  if (!messages_) return;
  const bool begins = body.messages() == 0 && body.other_bytes() == 0 && body.message_begun().empty();
  if (begins && !body.in_messages()) return;  // a recorder that does not read these as messages, before the first
  // Where the messages begin and end is not known.
  if (!body.in_messages() || base64_ ||
      !messages_->go_on_from({.prefix = body.message_begun(),
                              .body_left = body.message_bytes_left(),
                              .first_byte_ns = body.message_first_byte_ns()})) {
    messages_.reset();
  }
}

void CallBuilder::Impl::keep_headers_for_state(OpenCall& opened, Direction direction, const HeaderList& fields) {
  auto& last = last_headers[index(direction)];
  if (!last || !same_but_path(*last, fields)) last = std::make_shared<const HeaderList>(kept_of(fields));
  opened.headers[index(direction)] = last;
}

void CallBuilder::save(capture::ConnectionState& out) const {
  out.set_newest_stream(impl_->newest_stream);
  out.set_headers_seen(impl_->client_headers_seen);
  out.set_client_window_increment(impl_->client_window_increment);
  std::size_t budget = kMaxSavedHeaderBytes;
  const auto save_one = [&](uint32_t id, const Impl::OpenCall& opened) {
    if (out.streams_size() >= kMaxSavedStreams) return;
    const Call& call = opened.call;
    auto& stream = *out.add_streams();
    stream.set_stream(id);
    if (call.start_ns >= 0) stream.set_start_ns(call.start_ns);
    if (call.request_end_ns >= 0) stream.set_request_end_ns(call.request_end_ns);
    if (call.first_byte_ns >= 0) stream.set_first_byte_ns(call.first_byte_ns);
    for (const Direction direction : kDirections) {
      const bool request = direction == Direction::client_to_server;
      auto& body = request ? *stream.mutable_request() : *stream.mutable_response();
      body.set_ended(opened.silent[index(direction)]);
      if (request && !call.path.empty()) add_field(body, ":path", call.path, budget);
      if (const auto& headers = opened.headers[index(direction)]) {
        for (const auto& field : *headers) add_field(body, field.name, field.value, budget);
      }
      if (const auto& reader = opened.bodies[index(direction)]) {
        reader->save(call, body);
      } else {
        body.set_other_bytes(request ? call.request_tail_bytes : call.response_tail_bytes);
      }
    }
    // Whoever reads the answer's headers finds out by himself that it is something else.
    const auto& answer = opened.headers[index(Direction::server_to_client)];
    if (!answer || call.unreadable_reason != why_not_grpc(*answer)) {
      stream.set_unreadable_reason(call.unreadable_reason);
    }
    if (!opened.ended) {
      out.add_open_streams(id);
      return;
    }
    stream.set_ended_by(std::string(name(call.ended_by)));
    if (call.end_ns >= 0) stream.set_end_ns(call.end_ns);
    if (call.reset_code) stream.set_reset_code(*call.reset_code);
    if (call.grpc_status) stream.set_grpc_status(*call.grpc_status);
    if (call.grpc_message && call.grpc_message->size() <= kMaxKeptHeaderBytes) {
      stream.set_grpc_message(*call.grpc_message);
    }
    stream.set_trailers_only(call.trailers_only);
  };
  // Those that linger last, in their order.
  for (const auto& [id, opened] : impl_->open) {
    if (std::ranges::find(impl_->lingering, id) == impl_->lingering.end()) save_one(id, opened);
  }
  for (const uint32_t id : impl_->lingering) {
    if (const auto found = impl_->open.find(id); found != impl_->open.end()) save_one(id, found->second);
  }
}

void CallBuilder::restore(const capture::ConnectionState& state) {
  auto& self = *impl_;
  self.unreadable_reason.clear();
  self.requests_readable = true;
  self.answers_readable = true;
  self.lingering.clear();
  self.client_headers_seen = self.client_headers_seen || state.headers_seen();
  self.client_window_increment = std::max(self.client_window_increment, state.client_window_increment());
  std::map<uint32_t, const capture::ConnectionState::Stream*> saved;
  for (const auto& stream : state.streams()) saved[stream.stream()] = &stream;
  for (auto at = self.open.begin(); at != self.open.end();) {
    at = saved.contains(at->first) ? std::next(at) : self.emit(at);
  }
  self.newest_stream = std::max(self.newest_stream, state.newest_stream());
  for (const auto& stream : state.streams()) {
    if (is_client_initiated(stream.stream())) self.restore_stream(stream, state.continued());
  }
}

void CallBuilder::Impl::restore_stream(const capture::ConnectionState::Stream& stream, bool continued) {
  const auto [at, is_new] = open.try_emplace(stream.stream());
  OpenCall& opened = at->second;
  Call& call = opened.call;
  call.connection = connection;
  call.stream = stream.stream();
  if (is_new) call.began_earlier = true;
  call.end_unseen = false;
  if (call.unreadable_reason.empty()) call.unreadable_reason = stream.unreadable_reason();
  const auto time = [](bool is_known, int64_t time_ns) { return is_known ? time_ns : -1; };
  call.start_ns = time(stream.has_start_ns(), stream.start_ns());
  call.request_end_ns = time(stream.has_request_end_ns(), stream.request_end_ns());
  call.first_byte_ns = time(stream.has_first_byte_ns(), stream.first_byte_ns());
  for (const Direction direction : kDirections) {
    const bool request = direction == Direction::client_to_server;
    const auto& body = request ? stream.request() : stream.response();
    opened.silent[index(direction)] = body.ended();
    opened.bodies[index(direction)].reset();
    (request ? call.request_tail_bytes : call.response_tail_bytes) = body.other_bytes();
    if (request ? body.headers().empty() : call.first_byte_ns < 0) continue;
    const auto fields = fields_of(body);
    if (request) {
      if (const auto* path = find_header(fields, ":path")) call.path = *path;
    } else {
      call.http_status = find_number(fields, ":status");
    }
    if (options.keep_headers) (request ? call.request_headers : call.response_headers) = fields;
    if (options.keep_for_state) keep_headers_for_state(opened, direction, fields);
    start_body(opened, direction, fields);
    opened.bodies[index(direction)]->restore(call, body);
  }
  if (stream.ended_by().empty()) return;
  opened.ended = true;
  opened.quiet = is_new && continued;
  call.ended_by = ended_by_of(stream.ended_by());
  call.end_ns = time(stream.has_end_ns(), stream.end_ns());
  if (stream.has_reset_code()) call.reset_code = stream.reset_code();
  if (stream.has_grpc_status()) call.grpc_status = stream.grpc_status();
  if (stream.has_grpc_message()) call.grpc_message = stream.grpc_message();
  call.trailers_only = stream.trailers_only();
  const bool reset = call.ended_by == EndedBy::client_reset || call.ended_by == EndedBy::server_reset;
  if (reset) linger(stream.stream());
}

}  // namespace ztape::http2
