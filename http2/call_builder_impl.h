// What a CallBuilder holds. Private to call_builder.cc and call_state.cc.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "http2/body_reader.h"
#include "http2/call_builder.h"

namespace ztape::http2 {

inline bool is_client_initiated(uint32_t stream) {
  return stream % 2 == 1;
}

struct CallBuilder::Impl {
  static constexpr std::size_t kMaxLingering = 64;

  struct OpenCall {
    Call call;
    bool watched = false;                 // the watcher knows it as under way
    bool ended = false;                   // the outcome is known
    bool silent[2] = {false, false};      // by direction: END_STREAM or RST_STREAM was sent, nothing can follow
    std::optional<BodyReader> bodies[2];  // by direction, from its headers on
    // By direction, with keep_for_state; the request's without its path, so that most calls share theirs.
    std::shared_ptr<const HeaderList> headers[2];
    bool quiet = false;  // its outcome was known in an earlier file, and nothing has come since
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
  // Of the connection's start, for whoever plays it again.
  bool client_headers_seen = false;
  uint32_t client_window_increment = 0;
  std::shared_ptr<const HeaderList> last_headers[2];  // by direction, with keep_for_state

  OpenCall* find(const Frame& frame) {
    const auto found = open.find(frame.stream);
    if (found == open.end()) return nullptr;
    found->second.quiet = false;
    return &found->second;
  }

  // In call_state.cc.
  void keep_headers_for_state(OpenCall& opened, Direction direction, const HeaderList& fields);
  void restore_stream(const capture::ConnectionState::Stream& stream, bool continued);

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
    const bool quiet = opened.quiet;
    const auto next = open.erase(at);
    if (!quiet) on_call(std::move(call));
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
      if (options.keep_for_state) keep_headers_for_state(opened, Direction::server_to_client, fields);
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

}  // namespace ztape::http2
