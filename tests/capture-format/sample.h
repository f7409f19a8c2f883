// Records as a recorder makes them, and what a written capture comes to: shared by the tests of the capture file.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "capture-format/reader.h"
#include "capture-format/writer.h"

namespace ztape::sample {

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string noise(std::size_t length, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(length, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

inline std::span<const uint8_t> span_of(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

inline capture::CaptureStart start(int64_t opened_unix_ns = 1'800'000'000'000'000'000) {
  capture::CaptureStart record;
  record.set_tool_version("test");
  record.mutable_opened()->set_realtime_unix_ns(opened_unix_ns);
  record.mutable_opened()->set_monotonic_ns(77);
  record.set_source("test");
  return record;
}

inline capture::Record open_record(ConnectionId connection, int64_t time_ns) {
  capture::Record record;
  record.mutable_connection_open()->set_connection(connection);
  record.mutable_connection_open()->set_time_ns(time_ns);
  record.mutable_connection_open()->set_downstream_peer("127.0.0.1:50000");
  return record;
}

inline capture::Record chunk_record(ConnectionId connection, Direction direction, uint64_t offset, int64_t time_ns,
                                    const std::string& bytes, capture::End end = capture::NOT_ENDED) {
  capture::Record record;
  auto& chunk = *record.mutable_chunk();
  chunk.set_connection(connection);
  chunk.set_direction(direction == Direction::server_to_client ? capture::SERVER_TO_CLIENT : capture::CLIENT_TO_SERVER);
  chunk.set_offset(offset);
  chunk.set_time_ns(time_ns);
  chunk.set_bytes(bytes);
  chunk.set_end(end);
  return record;
}

inline ChunkView view_of(const capture::Chunk& chunk) {
  return {.connection = chunk.connection(),
          .direction = chunk.direction() == capture::SERVER_TO_CLIENT ? Direction::server_to_client
                                                                      : Direction::client_to_server,
          .offset = chunk.offset(),
          .time_ns = chunk.time_ns(),
          .bytes = span_of(chunk.bytes()),
          .end = chunk.end(),
          .error = chunk.error()};
}

struct ReadBack {
  std::vector<std::string> records;  // serialized
  std::vector<Damage> damage;
  uint64_t blocks = 0;
};

inline ReadBack read_all(CaptureReader& reader) {
  ReadBack back;
  while (const auto* record = reader.next()) back.records.push_back(record->SerializeAsString());
  back.damage = reader.damage();
  back.blocks = reader.blocks_read();
  return back;
}

inline ReadBack read_all(const std::string& path) {
  auto reader = CaptureReader::open(path);
  EXPECT_TRUE(reader.has_value()) << reader.error().line();
  return reader ? read_all(**reader) : ReadBack{};
}

}  // namespace ztape::sample
