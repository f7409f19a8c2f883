#include "replay/client_session.h"

#include <algorithm>

#include "replay/binary_metadata.h"

namespace ztape::replay {
namespace {

constexpr int32_t kDefaultWindow = 65535;  // RFC 9113, section 6.9.2

std::unexpected<Error> protocol_error(const std::string& what, int code) {
  return std::unexpected(
      Error{.code = ErrorCode::protocol, .message = what + ": " + nghttp2_strerror(code), .subject = ""});
}

}  // namespace

struct ClientSession::Callbacks {
  static ClientSession& self(void* user) { return *static_cast<ClientSession*>(user); }

  static bool opens_block(const nghttp2_frame* frame) { return frame->hd.type == NGHTTP2_HEADERS; }

  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (opens_block(frame)) self(user).fields_.clear();
    return 0;
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                       const uint8_t* value, size_t value_size, uint8_t, void* user) {
    if (!opens_block(frame)) return 0;
    self(user).fields_.push_back({std::string(reinterpret_cast<const char*>(name), name_size),
                                  std::string(reinterpret_cast<const char*>(value), value_size)});
    return 0;
  }

  // The recorded SETTINGS may allow what nghttp2 takes for invalid; anything else invalid stays so.
  static int on_invalid_header(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name,
                               size_t name_size, const uint8_t* value, size_t value_size, uint8_t flags, void* user) {
    if (!is_true_binary({reinterpret_cast<const char*>(name), name_size},
                        {reinterpret_cast<const char*>(value), value_size})) {
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return on_header(session, frame, name, name_size, value, value_size, flags, user);
  }

  static int on_frame_recv(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& session = self(user);
    session.frames_seen_ = true;
    const int32_t stream = frame->hd.stream_id;
    const bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS: {
        const auto fields = std::move(session.fields_);
        session.fields_.clear();
        session.handler_.on_headers(stream, fields, end);
        break;
      }
      case NGHTTP2_DATA:
        if (end) session.handler_.on_data_end(stream);
        break;
      case NGHTTP2_RST_STREAM: session.reset_by_server_[stream] = true; break;
      case NGHTTP2_GOAWAY: {
        const auto& goaway = frame->goaway;
        session.handler_.on_goaway(
            goaway.last_stream_id, goaway.error_code,
            std::string(reinterpret_cast<const char*>(goaway.opaque_data), goaway.opaque_data_len));
        break;
      }
      default: break;
    }
    return 0;
  }

  static int on_data(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* bytes, size_t size, void* user) {
    self(user).handler_.on_data(stream, {bytes, size});
    return 0;
  }

  static int on_stream_close(nghttp2_session*, int32_t stream, uint32_t error_code, void* user) {
    auto& session = self(user);
    // A stream that a GOAWAY leaves out is closed by nghttp2 as refused.
    const bool by_server = session.reset_by_server_.erase(stream) > 0 || error_code == NGHTTP2_REFUSED_STREAM;
    session.bodies_.erase(stream);
    session.handler_.on_closed(stream, error_code, by_server);
    return 0;
  }

  static int on_frame_send(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& session = self(user);
    if (frame->hd.type == NGHTTP2_HEADERS) session.handler_.on_request_sent(frame->hd.stream_id);
    // nghttp2 answers a connection error (RFC 9113, section 5.4.1) by itself.
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) {
      session.broken_ = !session.frames_seen_
                            ? "the server does not speak HTTP/2"
                            : "the server broke HTTP/2 (" + http2::error_code_name(frame->goaway.error_code) + ")";
    }
    return 0;
  }

  static ssize_t read_body(nghttp2_session*, int32_t stream, uint8_t* room, size_t room_size, uint32_t* flags,
                           nghttp2_data_source*, void* user) {
    auto& session = self(user);
    const auto found = session.bodies_.find(stream);
    if (found == session.bodies_.end()) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    Body& body = found->second;
    const std::size_t count = std::min(room_size, body.bytes.size() - body.taken);
    std::copy_n(body.bytes.data() + body.taken, count, room);
    body.taken += count;
    if (body.taken == body.bytes.size()) {
      body.bytes.clear();
      body.taken = 0;
      if (body.end) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
      } else if (count == 0) {
        body.deferred = true;
        return NGHTTP2_ERR_DEFERRED;
      }
    }
    return static_cast<ssize_t>(count);
  }
};

ClientSession::ClientSession(Handler& handler) : handler_(handler) {}

ClientSession::~ClientSession() = default;

Result<std::unique_ptr<ClientSession>> ClientSession::create(const std::vector<http2::Setting>& settings,
                                                             uint32_t window_increment, Handler& handler) {
  std::unique_ptr<ClientSession> client(new ClientSession(handler));
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::on_header);
  nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, Callbacks::on_invalid_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::on_frame_recv);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::on_stream_close);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callbacks::on_frame_send);
  nghttp2_session* session = nullptr;
  nghttp2_session_client_new(&session, callbacks, client.get());
  nghttp2_session_callbacks_del(callbacks);
  client->session_.reset(session);

  std::vector<nghttp2_settings_entry> entries;
  entries.reserve(settings.size());
  for (const auto& setting : settings) entries.push_back({setting.id, setting.value});
  if (const int code = nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, entries.data(), entries.size())) {
    return protocol_error("the recorded SETTINGS cannot be sent", code);
  }
  if (window_increment > 0) {
    const auto window = static_cast<int32_t>(std::min<int64_t>(int64_t{kDefaultWindow} + window_increment, INT32_MAX));
    nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, window);
  }
  return client;
}

Result<int32_t> ClientSession::start(const http2::HeaderList& fields) {
  std::vector<nghttp2_nv> list;
  list.reserve(fields.size());
  for (const auto& field : fields) {
    const auto bytes = [](const std::string& text) {
      return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));  // nghttp2 copies; its struct has no const
    };
    list.push_back(
        {bytes(field.name), bytes(field.value), field.name.size(), field.value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  if (nghttp2_session_check_request_allowed(session_.get()) == 0) {
    return protocol_error("no request may start any more", NGHTTP2_ERR_START_STREAM_NOT_ALLOWED);
  }
  nghttp2_data_provider provider{};
  provider.read_callback = Callbacks::read_body;
  const int32_t stream = nghttp2_submit_request(session_.get(), nullptr, list.data(), list.size(), &provider, nullptr);
  if (stream < 0) return protocol_error("a request cannot start", stream);
  bodies_.emplace(stream, Body{});
  return stream;
}

void ClientSession::resume(int32_t stream, Body& body) {
  if (!body.deferred) return;
  body.deferred = false;
  nghttp2_session_resume_data(session_.get(), stream);
}

void ClientSession::send(int32_t stream, std::string_view bytes) {
  const auto found = bodies_.find(stream);
  if (found == bodies_.end()) return;  // closed meanwhile
  found->second.bytes.append(bytes);
  resume(stream, found->second);
}

void ClientSession::half_close(int32_t stream) {
  const auto found = bodies_.find(stream);
  if (found == bodies_.end()) return;
  found->second.end = true;
  resume(stream, found->second);
}

void ClientSession::reset(int32_t stream, uint32_t error_code) {
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream, error_code);
}

void ClientSession::goaway() {
  nghttp2_session_terminate_session(session_.get(), NGHTTP2_NO_ERROR);
}

Result<void> ClientSession::receive(std::span<const uint8_t> bytes) {
  const auto taken = nghttp2_session_mem_recv(session_.get(), bytes.data(), bytes.size());
  if (taken < 0) return protocol_error("the server does not speak HTTP/2", static_cast<int>(taken));
  return {};
}

std::string ClientSession::take_output() {
  std::string output;
  const uint8_t* piece = nullptr;
  for (ssize_t size = 0; (size = nghttp2_session_mem_send(session_.get(), &piece)) > 0;) {
    output.append(reinterpret_cast<const char*>(piece), static_cast<std::size_t>(size));
  }
  return output;
}

}  // namespace ztape::replay
