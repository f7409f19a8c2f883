#include "http2/call_builder.h"

#include <deque>
#include <iterator>
#include <optional>
#include <utility>

#include "http2/body_reader.h"

namespace ztape::http2 {
namespace {

bool is_client_initiated(uint32_t stream) {
  return stream % 2 == 1;
}

}  // namespace

struct CallBuilder::Impl {
  static constexpr std::size_t kMaxLingering = 64;

  struct OpenCall {
    Call call;
    bool watched = false;                 // the watcher knows it as under way
    bool ended = false;                   // the outcome is known
    bool silent[2] = {false, false};      // by direction: END_STREAM or RST_STREAM was sent, nothing can follow
    std::optional<BodyReader> bodies[2];  // by direction, from its headers on
  };

  ConnectionId connection = 0;
  CallBuilderOptions options;
  OnCall on_call;
  CallWatcher* watcher = nullptr;
  std::map<uint32_t, OpenCall> open;
  std::string unreadable_reason;  // of the connection: calls from here on inherit it
  bool requests_readable = true;
  bool answers_readable = true;
  uint32_t newest_stream = 0;
  std::deque<uint32_t> lingering;

  OpenCall* find(const Frame& frame) {
    const auto found = open.find(frame.stream);
    return found == open.end() ? nullptr : &found->second;
  }

  // The call of a HEADERS frame, begun by it where it may: by a client's on a new stream, or by a server's where the
  // client's cannot be read. nullptr: no call of ours, as an answer that crosses its cancellation.
  OpenCall* find_or_begin(const Frame& frame) {
    if (auto* opened = find(frame)) return opened;
    const bool may_begin = frame.direction == Direction::client_to_server || !requests_readable;
    if (!may_begin || !is_client_initiated(frame.stream) || frame.stream <= newest_stream) return nullptr;
    newest_stream = frame.stream;
    OpenCall& opened = open[frame.stream];
    opened.call.connection = connection;
    opened.call.stream = frame.stream;
    opened.call.unreadable_reason = unreadable_reason;
    opened.call.end_unseen = !answers_readable;
    return &opened;
  }

  void start_body(OpenCall& opened, Direction direction, const HeaderList& fields) {
    const auto& body = opened.bodies[index(direction)].emplace(direction, fields, options);
    if (direction == Direction::client_to_server) {
      opened.call.content = content_of(fields);
      return;
    }
    if (body.has_messages() || (options.not_only_grpc && opened.call.content == Content::other)) return;
    note(opened.call, why_not_grpc(fields));
  }

  static void note(Call& call, const std::string& reason) {
    if (call.unreadable_reason.empty()) call.unreadable_reason = reason;
  }

  static void end_request(OpenCall& opened, int64_t time_ns) {
    opened.silent[index(Direction::client_to_server)] = true;
    if (opened.call.request_end_ns < 0) opened.call.request_end_ns = time_ns;
  }

  // The first end counts; what comes after it does not change the outcome.
  void end(OpenCall& opened, EndedBy how, int64_t time_ns) {
    if (opened.ended) return;
    opened.ended = true;
    opened.call.ended_by = how;
    opened.call.end_ns = time_ns;
    tell_over(opened);
  }

  void tell_begun(OpenCall& opened) {
    if (!watcher || opened.ended || opened.call.end_unseen || std::exchange(opened.watched, true)) return;
    watcher->on_begun(opened.call);
  }

  void tell_over(OpenCall& opened) {
    if (std::exchange(opened.watched, false)) watcher->on_over(opened.call);
  }

  // A reset stream lingers: what the other side had already sent still belongs to its call, until nothing can come any
  // more or kMaxLingering others have been reset since.
  void linger(uint32_t stream) {
    lingering.push_back(stream);
    if (lingering.size() <= kMaxLingering) return;
    if (const auto oldest = open.find(lingering.front()); oldest != open.end()) emit(oldest);
    lingering.pop_front();
  }

  void emit_if_over(uint32_t stream) {
    const auto found = open.find(stream);
    if (found == open.end() || !found->second.silent[0] || !found->second.silent[1]) return;
    emit(found);
  }

  std::map<uint32_t, OpenCall>::iterator emit(std::map<uint32_t, OpenCall>::iterator at) {
    OpenCall& opened = at->second;
    for (const Direction direction : kDirections) {
      if (auto& body = opened.bodies[index(direction)]) body->finish(opened.call);
    }
    Call call = std::move(opened.call);
    const auto next = open.erase(at);
    on_call(std::move(call));
    return next;
  }

  void read_response_headers(OpenCall& opened, const Frame& frame, const HeaderList& fields, bool end_stream) {
    Call& call = opened.call;
    const auto status = find_number(fields, ":status");
    if (status && *status >= 100 && *status < 200) return;  // informational: the answer's own headers follow
    const bool first = call.first_byte_ns < 0;
    if (first) {
      call.first_byte_ns = frame.last_byte_ns;
      call.http_status = status;
      start_body(opened, Direction::server_to_client, fields);
    }
    call.trailers_only = first && end_stream;
    if (options.keep_headers) (first && !end_stream ? call.response_headers : call.trailers) = fields;
    if (!end_stream) return;
    opened.silent[index(Direction::server_to_client)] = true;
    if (opened.ended) return;  // these trailers crossed a cancellation: the client never saw them
    read_grpc_status(fields, call);
    end(opened, EndedBy::trailers, frame.last_byte_ns);
  }
};

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
