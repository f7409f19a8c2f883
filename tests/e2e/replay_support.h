// `ztape replay` as tests run it: captures, servers, and the report as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/child_process.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {

struct Replayed {
  int status = 0;
  std::string page;       // stdout
  std::string err;        // stderr
  nlohmann::json report;  // null where none was written
};

// The fixture as a capture in that folder; its path.
std::string import_fixture(const TemporaryDirectory& folder, const std::string& fixture);

// Out of a first line "listening on 127.0.0.1:4711...": "http://127.0.0.1:4711".
std::string url_of(ChildProcess& server);

// `ztape serve` of a capture on a free port.
std::vector<std::string> serve_command(const std::string& capture, const std::vector<std::string>& more = {});

// Runs `ztape replay -r capture` with these words, and reads its report back.
Replayed replay(const TemporaryDirectory& folder, const std::string& capture, const std::vector<std::string>& words);

}  // namespace ztape::test
