#include "tests/support/fixture.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace ztape::test {
namespace {

namespace fs = std::filesystem;

std::string root() {
  return std::string(ZTAPE_TESTS_DIR) + "/fixtures";
}

FixtureConnection load_connection(const std::string& folder, int number) {
  const std::string stem = folder + "/connection" + std::to_string(number);
  FixtureConnection connection;
  connection.number = number;
  for (const Direction direction : kDirections) {
    connection.bytes[index(direction)] = read_file(stem + "." + std::string(name(direction)));
  }
  std::istringstream rows(read_file(stem + ".chunks.tsv"));
  std::size_t offsets[2] = {0, 0};
  for (std::string row; std::getline(rows, row);) {
    std::istringstream columns(row);
    FixtureChunk chunk;
    std::string what;
    std::string length;
    columns >> chunk.time_ns >> what >> length;
    if (what == "close") {
      connection.close_ns = chunk.time_ns;
      continue;
    }
    chunk.direction =
        what == name(Direction::client_to_server) ? Direction::client_to_server : Direction::server_to_client;
    chunk.eof = length == "eof";
    chunk.offset = offsets[index(chunk.direction)];
    if (!chunk.eof) chunk.length = std::stoul(length);
    offsets[index(chunk.direction)] += chunk.length;
    connection.chunks.push_back(chunk);
  }
  std::istringstream calls(read_file(stem + ".calls.jsonl"));
  for (std::string line; std::getline(calls, line);) connection.calls.push_back(nlohmann::json::parse(line));
  return connection;
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(root())) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

std::string fixture_path(const std::string& name) {
  return root() + "/" + name;
}

std::vector<FixtureConnection> load_fixture(const std::string& name) {
  std::vector<FixtureConnection> connections;
  const std::string folder = fixture_path(name);
  for (int number = 1; fs::exists(folder + "/connection" + std::to_string(number) + ".chunks.tsv"); ++number) {
    connections.push_back(load_connection(folder, number));
  }
  if (connections.empty()) throw std::runtime_error("no connections in " + folder);
  return connections;
}

}  // namespace ztape::test
