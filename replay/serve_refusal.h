// Answers that are not out of a capture. Pure.
#pragma once

#include <string>

#include "replay/answer_script.h"
#include "replay/mutate.h"

namespace ztape::replay {

// gRPC, statuscodes.md.
inline constexpr int kPermissionDenied = 7;
inline constexpr int kResourceExhausted = 8;
inline constexpr int kUnimplemented = 12;
inline constexpr int kInternal = 13;

// Trailers only, at once.
inline AnswerScript refusal_script(int status, const std::string& message) {
  AnswerScript script;
  script.trailers = {{":status", "200"},
                     {"content-type", "application/grpc"},
                     {"grpc-status", std::to_string(status)},
                     {"grpc-message", percent_encode(message)}};
  script.steps = {{AnswerStep::Kind::trailers, 0, 0, true}};
  script.units = {{0, 1, 0, false, 0}};
  return script;
}

}  // namespace ztape::replay
