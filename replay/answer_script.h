// An answer made ready to be sent: its bytes, cut into steps, and the steps grouped into writes. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "http2/frame.h"
#include "replay/answer.h"

namespace ztape::replay {

// `ztape serve --writes`.
enum class WriteMode {
  recorded,  // what arrived in one recorded read goes out in one write
  one,       // all that is ready of an answer in one write
  split,     // HEADERS, each DATA frame and the trailers in a write each
};

struct AnswerStep {
  enum class Kind { headers, frame, trailers, reset };
  Kind kind = Kind::headers;
  std::size_t begin = 0;  // of a DATA frame's content in AnswerScript::body
  std::size_t end = 0;
  bool end_stream = false;
};

// Steps that go out together, once the request has come as far as it had in the recording.
struct AnswerUnit {
  std::size_t first = 0;  // steps [first, last)
  std::size_t last = 0;
  std::size_t needs_requests = 0;  // messages of the request; with needs_end also its END_STREAM
  bool needs_end = false;
  int64_t delay_ns = 0;  // in the recording, from the moment when what is needed was there; never negative
};

struct AnswerScript {
  http2::HeaderList headers;
  http2::HeaderList trailers;
  uint32_t reset_code = 0;
  std::string body;  // of all DATA frames
  std::vector<AnswerStep> steps;
  std::vector<AnswerUnit> units;
};

// `timed`: units are also cut where the recorded times differ, so that each can be sent at its own time.
AnswerScript make_script(Answer&& answer, WriteMode mode, bool timed);

}  // namespace ztape::replay
