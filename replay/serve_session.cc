#include "replay/serve_session.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <utility>

#include "proto/method_table.h"
#include "replay/binary_metadata.h"
#include "replay/mutate.h"
#include "replay/serve_refusal.h"
#include "replay/serve_stream.h"

namespace ztape::replay {
namespace {

constexpr std::size_t kMaxLoggedText = 300;

struct SessionDelete {
  void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
};

// What may share a write(2): frames of one unit of one answer, or frames of no answer (stream 0).
struct WriteKey {
  int32_t stream = 0;
  std::size_t unit = 0;
  friend bool operator==(const WriteKey&, const WriteKey&) = default;
};

std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, kMaxLoggedText)) {
    shown += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return shown;
}

std::vector<nghttp2_nv> name_values(const http2::HeaderList& fields) {
  std::vector<nghttp2_nv> list;
  const auto bytes = [](const std::string& text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));  // nghttp2 copies, its struct is not const
  };
  for (const auto& field : fields) {
    list.push_back(
        {bytes(field.name), bytes(field.value), field.name.size(), field.value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  return list;
}

}  // namespace

struct ServeSession::Impl {
  const ServeOptions& options;
  const AnswerBook& book;
  ServeCounts& counts;
  const ServeLog& log;
  AnswerBook::Reader answers;
  std::unique_ptr<nghttp2_session, SessionDelete> session;
  std::unordered_map<int32_t, std::unique_ptr<ServeStream>> streams;
  std::deque<int32_t> ready;                      // streams whose next unit may go out
  std::multimap<MonotonicTime, int32_t> waiting;  // streams whose next unit has its time
  std::size_t held_bytes = 0;
  MonotonicTime now;
  std::string carried;  // a frame that did not fit into the last write
  WriteKey carried_key;
  WriteKey packed_key;             // of the frame that nghttp2 has just made
  int32_t packed_data_stream = 0;  // set while that frame is DATA
  bool failed = false;

  Impl(const AnswerBook& answer_book, const ServeOptions& serve_options, ServeCounts& serve_counts,
       const ServeLog& serve_log)
      : options(serve_options), book(answer_book), counts(serve_counts), log(serve_log), answers(answer_book) {
    start_session();
  }

  void start_session() {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
          return static_cast<Impl*>(self)->on_begin_headers(*frame);
        });
    nghttp2_session_callbacks_set_on_header_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size, uint8_t, void* self) {
          static_cast<Impl*>(self)->on_header(*frame, {reinterpret_cast<const char*>(name), name_size},
                                              {reinterpret_cast<const char*>(value), value_size});
          return 0;
        });
    // The recorded SETTINGS may allow what nghttp2 takes for invalid; anything else invalid stays so.
    nghttp2_session_callbacks_set_on_invalid_header_callback(
        callbacks,
        [](nghttp2_session*, const nghttp2_frame*, const uint8_t* name, size_t name_size, const uint8_t* value,
           size_t value_size, uint8_t, void*) -> int {
          return is_true_binary({reinterpret_cast<const char*>(name), name_size},
                                {reinterpret_cast<const char*>(value), value_size})
                     ? 0
                     : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks,
                                                         [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
                                                           static_cast<Impl*>(self)->on_frame(*frame);
                                                           return 0;
                                                         });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks, [](nghttp2_session*, uint8_t, int32_t stream_id, const uint8_t* bytes, size_t size, void* self) {
          static_cast<Impl*>(self)->on_data(stream_id, {bytes, size});
          return 0;
        });
    nghttp2_session_callbacks_set_before_frame_send_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
          static_cast<Impl*>(self)->before_frame(frame->hd);
          return 0;
        });
    nghttp2_session_callbacks_set_on_stream_close_callback(
        callbacks, [](nghttp2_session*, int32_t stream_id, uint32_t, void* self) {
          static_cast<Impl*>(self)->on_stream_close(stream_id);
          return 0;
        });
    nghttp2_session_callbacks_set_data_source_read_length_callback(
        callbacks, [](nghttp2_session*, uint8_t, int32_t stream_id, int32_t, int32_t, uint32_t max_frame_size,
                      void* self) { return static_cast<Impl*>(self)->frame_size(stream_id, max_frame_size); });
    nghttp2_session* made = nullptr;
    nghttp2_session_server_new(&made, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    session.reset(made);

    std::vector<nghttp2_settings_entry> entries;
    for (const auto& setting : options.settings) {
      // A server may not offer to push (RFC 9113, section 6.5.2): nghttp2 would refuse the whole list.
      if (setting.id == NGHTTP2_SETTINGS_ENABLE_PUSH && setting.value != 0) continue;
      entries.push_back({setting.id, setting.value});
    }
    if (nghttp2_submit_settings(made, NGHTTP2_FLAG_NONE, entries.data(), entries.size()) != 0) {
      nghttp2_submit_settings(made, NGHTTP2_FLAG_NONE, nullptr, 0);
    }
  }

  ServeStream* find(int32_t stream_id) {
    const auto found = streams.find(stream_id);
    return found == streams.end() ? nullptr : found->second.get();
  }

  // --- the request ---

  int on_begin_headers(const nghttp2_frame& frame) {
    if (frame.hd.type != NGHTTP2_HEADERS || frame.headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    if (streams.size() >= kMaxOpenStreams) {
      nghttp2_submit_rst_stream(session.get(), NGHTTP2_FLAG_NONE, frame.hd.stream_id, NGHTTP2_REFUSED_STREAM);
      return 0;
    }
    auto stream = std::make_unique<ServeStream>(frame.hd.stream_id);
    stream->start = now;
    streams.emplace(frame.hd.stream_id, std::move(stream));
    return 0;
  }

  void on_header(const nghttp2_frame& frame, std::string_view name, std::string_view value) {
    auto* stream = find(frame.hd.stream_id);
    if (!stream || frame.headers.cat != NGHTTP2_HCAT_REQUEST) return;
    if (name == ":path") stream->path = value;
    if (name == "grpc-encoding") stream->encoding = value;
  }

  void on_frame(const nghttp2_frame& frame) {
    if (frame.hd.type != NGHTTP2_HEADERS && frame.hd.type != NGHTTP2_DATA) return;
    auto* stream = find(frame.hd.stream_id);
    if (!stream) return;
    if (!stream->reader) stream->reader.emplace(true, kMaxRequestBytes, stream->encoding);
    if (!(frame.hd.flags & NGHTTP2_FLAG_END_STREAM)) return;
    stream->request_end = now;
    if (!stream->script) answer_whole(*stream);
    schedule(*stream);
  }

  void on_data(int32_t stream_id, std::span<const uint8_t> bytes) {
    auto* stream = find(stream_id);
    if (!stream || !stream->reader || stream->refusal) return;
    stream->held_bytes += bytes.size();
    held_bytes += bytes.size();
    std::string undecodable;
    const auto& fault = stream->reader->read(bytes, now.ns, [&](http2::Message&& message) {
      if (!message.error.empty()) undecodable = message.error;
      stream->requests.push_back(std::move(message.body));
      stream->request_times.push_back(now);
      if (stream->requests.size() == 1) stream->script = interleaved_answer(*stream);
    });
    if (stream->held_bytes > kMaxRequestBytes) {
      return refuse_bad(*stream, kResourceExhausted, "the request is larger than this server holds");
    }
    if (held_bytes > kMaxHeldBytes) {
      return refuse_bad(*stream, kResourceExhausted, "this connection's requests are more than this server holds");
    }
    if (!fault.empty()) return refuse_bad(*stream, kInternal, fault);
    if (!undecodable.empty()) return refuse_bad(*stream, kUnimplemented, undecodable);
    schedule(*stream);
  }

  void on_stream_close(int32_t stream_id) {
    const auto found = streams.find(stream_id);
    if (found == streams.end()) return;
    held_bytes -= found->second->held_bytes;
    streams.erase(found);
  }

  // --- which answer ---

  [[nodiscard]] bool refuses(const ServeStream& stream) const {
    const auto* method = find_method(stream.path);
    return method && !method->reads_only && !options.accept_send_transaction;
  }

  const AnswerScript* interleaved_answer(ServeStream& stream) {
    const auto* script = answers.next_interleaved(stream.path, stream.requests.front());
    if (script) ++counts.calls[stream.path];
    return script;
  }

  void answer_whole(ServeStream& stream) {
    if (stream.reader && stream.reader->tail_bytes() > 0) {
      return refuse_bad(stream, kInternal, "the request ends within a message");
    }
    if (refuses(stream)) {
      ++counts.refused_requests;
      const std::string name(short_name(stream.path));
      return refuse(stream, kPermissionDenied,
                    "ztape serve does not take " + name + " (start it with --accept-send-transaction)");
    }
    stream.script = answers.next_whole(stream.path, stream.requests);
    if (stream.script) {
      ++counts.calls[stream.path];
    } else {
      answer_unknown(stream);
    }
    release_requests(stream);
  }

  void answer_unknown(ServeStream& stream) {
    ++counts.unknown_requests;
    const auto name = printable(short_name(stream.path));
    const auto asked = name + ' ' + request_text(stream.path, stream.requests);
    if (counts.unknown_requests <= kMaxLoggedRequests) {
      const auto nearest = book.nearest(stream.path, stream.requests);
      log("not in the capture: " + asked +
          (nearest ? "; the nearest recorded one: " + *nearest : "; the capture has no " + name));
      if (counts.unknown_requests == kMaxLoggedRequests) log("further unknown requests are only counted");
    }
    refuse(stream, kUnimplemented, "not in the capture: " + asked);
  }

  void refuse_bad(ServeStream& stream, int status, const std::string& why) {
    if (stream.script && !stream.refusal) {  // an interleaved answer has begun: it cannot end with other headers
      nghttp2_submit_rst_stream(session.get(), NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_INTERNAL_ERROR);
      return;
    }
    ++counts.bad_requests;
    if (counts.bad_requests <= kMaxLoggedRequests) log("a bad request of " + printable(stream.path) + ": " + why);
    refuse(stream, status, why);
    schedule(stream);
  }

  void refuse(ServeStream& stream, int status, const std::string& why) {
    stream.refusal = std::make_unique<AnswerScript>(refusal_script(status, why));
    stream.script = stream.refusal.get();
    release_requests(stream);
  }

  // The bodies are not needed any more; their count and times are.
  void release_requests(ServeStream& stream) {
    for (auto& request : stream.requests) request = {};
    held_bytes -= stream.held_bytes;
    stream.held_bytes = 0;
  }

  // --- when ---

  // Queues the stream's next unit once the request has come far enough.
  void schedule(ServeStream& stream) {
    if (!stream.script || stream.scheduled || stream.next_unit >= stream.script->units.size()) return;
    const auto& unit = stream.script->units[stream.next_unit];
    if (stream.request_times.size() < unit.needs_requests || (unit.needs_end && !stream.request_end)) return;
    auto due = stream.start;
    if (unit.needs_requests > 0) due = std::max(due, stream.request_times[unit.needs_requests - 1]);
    if (unit.needs_end) due = std::max(due, *stream.request_end);
    if (options.delay == DelayMode::recorded) due.ns += unit.delay_ns;
    if (options.delay == DelayMode::fixed && stream.next_unit == 0) due.ns += options.delay_ns;
    stream.scheduled = true;
    if (due <= now) {
      ready.push_back(stream.id);
    } else {
      waiting.emplace(due, stream.id);
    }
  }

  // Hands the next ready unit to nghttp2. One at a time, so that its frames come out of it together. False: none is.
  bool release_unit() {
    while (!waiting.empty() && waiting.begin()->first <= now) {
      ready.push_back(waiting.begin()->second);
      waiting.erase(waiting.begin());
    }
    while (!ready.empty()) {
      auto* stream = find(ready.front());
      ready.pop_front();
      if (!stream) continue;  // reset meanwhile
      stream->scheduled = false;
      stream->allowed_step = stream->script->units[stream->next_unit].last;
      ++stream->next_unit;
      submit_steps(*stream);
      schedule(*stream);
      return true;
    }
    return false;
  }

  // --- the answer ---

  // Submits what may be sent, up to the next DATA frame: nghttp2 asks for those.
  void submit_steps(ServeStream& stream) {
    while (stream.step < stream.allowed_step) {
      const auto& script = *stream.script;
      switch (script.steps[stream.step].kind) {
        case AnswerStep::Kind::headers: submit_headers(stream, script.headers, NGHTTP2_FLAG_NONE); break;
        case AnswerStep::Kind::trailers: submit_headers(stream, script.trailers, NGHTTP2_FLAG_END_STREAM); break;
        case AnswerStep::Kind::reset:
          nghttp2_submit_rst_stream(session.get(), NGHTTP2_FLAG_NONE, stream.id, script.reset_code);
          break;
        case AnswerStep::Kind::frame: return read_body(stream);
      }
      ++stream.step;
    }
  }

  void submit_headers(ServeStream& stream, const http2::HeaderList& fields, uint8_t flags) {
    const auto list = name_values(fields);
    nghttp2_submit_headers(session.get(), flags, stream.id, nullptr, list.data(), list.size(), nullptr);
  }

  void read_body(ServeStream& stream) {
    if (stream.reading_body) {
      if (stream.deferred) nghttp2_session_resume_data(session.get(), stream.id);
      stream.deferred = false;
      return;
    }
    stream.reading_body = true;
    nghttp2_data_provider provider{};
    provider.read_callback = [](nghttp2_session*, int32_t stream_id, uint8_t* to, size_t size, uint32_t* flags,
                                nghttp2_data_source*, void* self) {
      return static_cast<Impl*>(self)->pack_data(stream_id, {to, size}, *flags);
    };
    const bool ends = stream.script->steps.back().kind == AnswerStep::Kind::frame;
    nghttp2_submit_data(session.get(), ends ? NGHTTP2_FLAG_END_STREAM : NGHTTP2_FLAG_NONE, stream.id, &provider);
  }

  // No frame is longer than the recorded one.
  ssize_t frame_size(int32_t stream_id, uint32_t max_frame_size) {
    const auto* stream = find(stream_id);
    if (!stream || stream->step >= stream->allowed_step) return 1;
    const auto& step = stream->script->steps[stream->step];
    const auto left = step.end - step.begin - stream->sent_of_step;
    return static_cast<ssize_t>(std::clamp<std::size_t>(left, 1, max_frame_size));
  }

  ssize_t pack_data(int32_t stream_id, std::span<uint8_t> to, uint32_t& flags) {
    auto* stream = find(stream_id);
    if (!stream) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (stream->step >= stream->allowed_step) {
      stream->deferred = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    const auto& script = *stream->script;
    const auto& step = script.steps[stream->step];
    const auto left = step.end - step.begin - stream->sent_of_step;
    const auto size = std::min(to.size(), left);
    std::memcpy(to.data(), script.body.data() + step.begin + stream->sent_of_step, size);
    packed_key = {stream_id, stream->unit_of_step(stream->step)};
    packed_data_stream = stream_id;
    stream->sent_of_step += size;
    if (size < left) return static_cast<ssize_t>(size);
    ++stream->step;
    stream->sent_of_step = 0;
    const bool last = stream->step == script.steps.size() || script.steps[stream->step].kind != AnswerStep::Kind::frame;
    if (last) flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  }

  // --- the bytes ---

  // The next frame nghttp2 has; "" when it has none. A stream may be closed by then: the key was taken before.
  std::string pull_frame(WriteKey& key) {
    const uint8_t* bytes = nullptr;
    const auto size = nghttp2_session_mem_send(session.get(), &bytes);
    if (size < 0) failed = true;
    if (size <= 0) return "";
    if (auto* stream = find(std::exchange(packed_data_stream, 0))) submit_steps(*stream);  // what may follow the DATA
    key = packed_key;
    return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)};
  }

  // Every frame but DATA (pack_data) and CONTINUATION, which belongs to the HEADERS before it.
  void before_frame(const nghttp2_frame_hd& frame) {
    packed_key = {};
    auto* stream = find(frame.stream_id);
    if (!stream || !stream->script) return;
    const auto last_unit = stream->script->units.size() - 1;
    if (frame.type == NGHTTP2_RST_STREAM) packed_key = {stream->id, last_unit};
    if (frame.type == NGHTTP2_HEADERS) packed_key = {stream->id, stream->headers_packed ? last_unit : 0};
    if (frame.type == NGHTTP2_HEADERS) stream->headers_packed = true;
  }

  std::optional<std::string> next_write() {
    std::string write = std::move(carried);
    auto key = carried_key;
    carried.clear();
    for (;;) {
      WriteKey frame_key;
      auto frame = failed ? "" : pull_frame(frame_key);
      if (frame.empty()) {
        if (!write.empty()) return write;
        if (failed || !release_unit()) return std::nullopt;
        continue;
      }
      const bool of_answer = frame_key.stream != 0;
      const bool together = frame_key == key && !(of_answer && options.writes == WriteMode::split);
      if (write.empty() || (together && write.size() + frame.size() <= kMaxWriteBytes)) {
        write += frame;
        key = frame_key;
        continue;
      }
      carried = std::move(frame);
      carried_key = frame_key;
      return write;
    }
  }
};

ServeSession::ServeSession(const AnswerBook& book, const ServeOptions& options, ServeCounts& counts,
                           const ServeLog& log)
    : impl_(std::make_unique<Impl>(book, options, counts, log)) {}

ServeSession::~ServeSession() = default;

bool ServeSession::receive(std::span<const uint8_t> bytes, MonotonicTime now) {
  impl_->now = now;
  // nghttp2 answers a breach of the protocol with a GOAWAY of its own and wants to read no more; what it cannot go on
  // from at all it returns (a wrong preface, no memory).
  if (nghttp2_session_mem_recv(impl_->session.get(), bytes.data(), bytes.size()) < 0) impl_->failed = true;
  return !impl_->failed;
}

std::optional<std::string> ServeSession::next_write(MonotonicTime now) {
  impl_->now = now;
  return impl_->next_write();
}

std::optional<MonotonicTime> ServeSession::next_due() const {
  if (impl_->waiting.empty()) return std::nullopt;
  return impl_->waiting.begin()->first;
}

void ServeSession::shut_down() {
  nghttp2_session_terminate_session(impl_->session.get(), NGHTTP2_NO_ERROR);
}

bool ServeSession::finished() const {
  if (!impl_->carried.empty()) return false;
  if (impl_->failed) return true;
  return !nghttp2_session_want_read(impl_->session.get()) && !nghttp2_session_want_write(impl_->session.get());
}

}  // namespace ztape::replay
