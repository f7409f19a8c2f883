// Runs the program under test to its end.
#pragma once

#include <string>
#include <vector>

#include "tests/support/child_process.h"

namespace ztape::test {

struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
};

inline Outcome run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), ZTAPE_BINARY_DIR "/ztape");
  ChildProcess process(arguments);
  const int status = process.wait();
  return {status, process.stdout_text(), process.stderr_text()};
}

}  // namespace ztape::test
