// The records of the file that FORMAT.md shows byte by byte.
#pragma once

#include <string>

#include "tests/capture-format/sample.h"

namespace ztape::sample {

inline WriterOptions example_options() {
  return {.compression_level = kStoredLevel + 1};  // zstd leaves such short records as they are, whatever its version
}

// Writes it to `path`: CaptureStart; then one connection on which the wallet says "ping", the indexer "pong".
inline void write_example(const std::string& path) {
  capture::CaptureStart start;
  start.set_tool_version("0.1.0");
  start.mutable_opened()->set_realtime_unix_ns(1'800'000'000'000'000'000);
  start.mutable_opened()->set_monotonic_ns(1'000'000'000);
  start.set_source("proxy");
  auto writer = CaptureWriter::create(path, start, example_options());
  ASSERT_TRUE(writer.has_value());
  capture::Record open;
  open.mutable_connection_open()->set_connection(1);
  open.mutable_connection_open()->set_time_ns(1000);
  open.mutable_connection_open()->set_downstream_peer("[::1]:50000");
  ASSERT_TRUE((*writer)->append(open));
  const std::string ping = "ping";
  const std::string pong = "pong";
  ASSERT_TRUE((*writer)->append_chunk({.connection = 1, .time_ns = 2000, .bytes = span_of(ping)}));
  ASSERT_TRUE((*writer)->append_chunk({.connection = 1,
                                       .direction = Direction::server_to_client,
                                       .time_ns = 3000,
                                       .bytes = span_of(pong),
                                       .end = capture::FIN}));
  ASSERT_TRUE((*writer)->append_chunk({.connection = 1, .offset = 4, .time_ns = 4000, .end = capture::FIN}));
  capture::ConnectionClose close;
  close.set_connection(1);
  close.set_time_ns(5000);
  close.set_first_side(capture::UPSTREAM);
  ASSERT_TRUE((*writer)->append_close(close));
  ASSERT_TRUE((*writer)->finish());
}

}  // namespace ztape::sample
