// One request of a served connection and the answer it is being given. Used by serve_session only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http2/message_reader.h"
#include "proto/words.h"
#include "replay/answer_script.h"

namespace ztape::replay {

struct ServeStream {
  explicit ServeStream(int32_t stream_id) : id(stream_id) {}

  int32_t id;
  std::string path;
  std::string encoding = "identity";  // grpc-encoding of the request
  std::optional<http2::MessageReader> reader;
  std::vector<std::string> requests;
  std::vector<MonotonicTime> request_times;
  std::optional<MonotonicTime> request_end;
  MonotonicTime start;
  std::size_t held_bytes = 0;

  const AnswerScript* script = nullptr;   // nullptr: not known yet
  std::unique_ptr<AnswerScript> refusal;  // owns `script` when it is no recorded one
  std::size_t next_unit = 0;
  bool scheduled = false;        // the next unit waits in the session's queue or for its time
  std::size_t allowed_step = 0;  // steps before it may be sent
  std::size_t step = 0;          // the next one to send
  std::size_t sent_of_step = 0;
  bool reading_body = false;  // nghttp2 holds the DATA source
  bool deferred = false;      // and waits for nghttp2_session_resume_data()
  bool headers_packed = false;

  [[nodiscard]] std::size_t unit_of_step(std::size_t wanted) const {
    std::size_t unit = 0;
    while (unit + 1 < script->units.size() && script->units[unit + 1].first <= wanted) ++unit;
    return unit;
  }
};

}  // namespace ztape::replay
