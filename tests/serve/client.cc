#include "tests/serve/client.h"

#include <algorithm>
#include <stdexcept>

#include "tests/support/frames.h"

namespace ztape::test {
namespace {

struct Upload {
  std::string bytes;
  bool end = false;
  bool deferred = false;
};

nghttp2_nv name_value(const std::string& name, const std::string& value) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

std::string value_of(const http2::HeaderList& fields, std::string_view name) {
  const auto* value = http2::find_header(fields, name);
  return value ? *value : "";
}

}  // namespace

std::string Answered::status() const {
  return value_of(trailers.empty() ? headers : trailers, "grpc-status");
}

std::string Answered::message() const {
  return value_of(trailers.empty() ? headers : trailers, "grpc-message");
}

std::vector<std::string> Answered::messages() const {
  std::vector<std::string> list;
  std::size_t at = 0;
  while (at < body.size()) {
    if (body.size() - at < 5) throw std::runtime_error("a message is cut within its prefix");
    const auto byte = [&](std::size_t i) { return static_cast<uint8_t>(body[at + i]); };
    const std::size_t length =
        std::size_t{byte(1)} << 24 | std::size_t{byte(2)} << 16 | std::size_t{byte(3)} << 8 | byte(4);
    if (body.size() - at - 5 < length) throw std::runtime_error("a message is cut");
    list.push_back(body.substr(at + 5, length));
    at += 5 + length;
  }
  return list;
}

struct MemoryClient::Impl {
  nghttp2_session* session = nullptr;
  std::map<int32_t, Upload> uploads;
};

MemoryClient::MemoryClient(const std::vector<http2::Setting>& settings) : impl_(std::make_unique<Impl>()) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                    const uint8_t* value, size_t value_size, uint8_t, void* self) {
        auto& answered = static_cast<MemoryClient*>(self)->answers[frame->hd.stream_id];
        auto& list = frame->headers.cat == NGHTTP2_HCAT_RESPONSE ? answered.headers : answered.trailers;
        list.push_back({std::string(reinterpret_cast<const char*>(name), name_size),
                        std::string(reinterpret_cast<const char*>(value), value_size)});
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks, [](nghttp2_session*, uint8_t, int32_t stream, const uint8_t* bytes, size_t size, void* self) {
        static_cast<MemoryClient*>(self)->answers[stream].body.append(reinterpret_cast<const char*>(bytes), size);
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        auto* client = static_cast<MemoryClient*>(self);
        auto& answered = client->answers[frame->hd.stream_id];
        if (frame->hd.type == NGHTTP2_DATA) answered.frames.push_back(frame->hd.length);
        if (frame->hd.type == NGHTTP2_RST_STREAM) answered.reset_code = frame->rst_stream.error_code;
        if (frame->hd.type == NGHTTP2_GOAWAY) client->goaway = true;
        const bool may_end = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
        if (may_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) answered.ended = true;
        return 0;
      });
  nghttp2_session_client_new(&impl_->session, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  std::vector<nghttp2_settings_entry> entries;
  for (const auto& setting : settings) entries.push_back({setting.id, setting.value});
  nghttp2_submit_settings(impl_->session, NGHTTP2_FLAG_NONE, entries.data(), entries.size());
}

MemoryClient::~MemoryClient() {
  nghttp2_session_del(impl_->session);
}

int32_t MemoryClient::request(const std::string& path, const std::vector<std::string>& messages, bool end,
                              const http2::HeaderList& metadata) {
  auto fields = grpc_request(path);
  fields.insert(fields.end(), metadata.begin(), metadata.end());
  std::vector<nghttp2_nv> list;
  for (const auto& field : fields) list.push_back(name_value(field.name, field.value));
  nghttp2_data_provider provider{};
  provider.read_callback = [](nghttp2_session*, int32_t stream, uint8_t* to, size_t size, uint32_t* flags,
                              nghttp2_data_source*, void* self) -> ssize_t {
    auto& upload = static_cast<MemoryClient*>(self)->impl_->uploads[stream];
    const auto count = std::min(size, upload.bytes.size());
    if (count == 0 && !upload.end) {
      upload.deferred = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    std::copy_n(upload.bytes.data(), count, to);
    upload.bytes.erase(0, count);
    if (upload.bytes.empty() && upload.end) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(count);
  };
  const auto stream = nghttp2_submit_request(impl_->session, nullptr, list.data(), list.size(), &provider, nullptr);
  auto& upload = impl_->uploads[stream];
  for (const auto& body : messages) upload.bytes += test::message(body);
  upload.end = end;
  return stream;
}

void MemoryClient::send_more(int32_t stream, const std::string& body) {
  impl_->uploads[stream].bytes += test::message(body);
  nghttp2_session_resume_data(impl_->session, stream);
}

void MemoryClient::end(int32_t stream) {
  impl_->uploads[stream].end = true;
  nghttp2_session_resume_data(impl_->session, stream);
}

void MemoryClient::cancel(int32_t stream) {
  nghttp2_submit_rst_stream(impl_->session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
}

void MemoryClient::send_to(replay::ServeSession& server, MonotonicTime now) {
  const uint8_t* bytes = nullptr;
  for (;;) {
    const auto size = nghttp2_session_mem_send(impl_->session, &bytes);
    if (size <= 0) return;
    server.receive({bytes, static_cast<std::size_t>(size)}, now);
  }
}

void MemoryClient::receive(const std::string& write) {
  const auto taken =
      nghttp2_session_mem_recv(impl_->session, reinterpret_cast<const uint8_t*>(write.data()), write.size());
  if (taken != static_cast<ssize_t>(write.size()))
    throw std::runtime_error("nghttp2's client refuses the server's bytes");
}

void MemoryClient::exchange(replay::ServeSession& server, MonotonicTime now) {
  for (bool more = true; more;) {
    more = false;
    send_to(server, now);
    while (auto write = server.next_write(now)) {
      more = true;
      receive(*write);
      writes.push_back(std::move(*write));
    }
  }
}

std::string frame_types(const std::string& write) {
  std::string types;
  for (std::size_t at = 0; at + 9 <= write.size();) {
    const auto byte = [&](std::size_t i) { return static_cast<uint8_t>(write[at + i]); };
    const std::size_t length = std::size_t{byte(0)} << 16 | std::size_t{byte(1)} << 8 | byte(2);
    if (!types.empty()) types += ' ';
    types += http2::frame_type_name(byte(3));
    at += 9 + length;
  }
  return types;
}

}  // namespace ztape::test
