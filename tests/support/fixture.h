// Loads the recorded traffic of tests/fixtures: bytes, chunks, and the calls as an independent decoder read them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proto/words.h"

namespace ztape::test {

// A row of connectionN.chunks.tsv.
struct FixtureChunk {
  int64_t time_ns = 0;
  Direction direction = Direction::client_to_server;
  std::size_t offset = 0;
  std::size_t length = 0;
  bool eof = false;  // the direction ended here
};

struct FixtureConnection {
  int number = 0;
  std::string bytes[2];  // by direction
  std::vector<FixtureChunk> chunks;
  int64_t close_ns = 0;
  std::vector<nlohmann::json> calls;  // in the file's order: by stream
};

std::vector<std::string> fixture_names();
std::string fixture_path(const std::string& name);
// Throws std::runtime_error when a file is missing.
std::vector<FixtureConnection> load_fixture(const std::string& name);

std::string read_file(const std::string& path);

}  // namespace ztape::test
