// A whole connection out of a capture: its opening, its calls, its close. What `show`, `replay` and `serve` start from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture-format/reader.h"
#include "http2/call.h"
#include "http2/call_builder.h"
#include "proto/capture.pb.h"

namespace ztape::http2 {

// One read of the recorder.
struct Read {
  int64_t time_ns = 0;
  Direction direction = Direction::client_to_server;
  uint32_t bytes = 0;
};

struct RecordedConnection {
  ConnectionId id = 0;
  int64_t open_ns = 0;    // on the capture's clock, as every time in it
  int64_t close_ns = -1;  // -1: still open at the end of the file
  capture::ConnectionOpen open;
  capture::ConnectionClose close;        // when close_ns >= 0
  std::vector<Call> calls;               // by stream
  std::vector<Read> reads;               // in order; those that brought bytes
  std::vector<Frame> frames;             // every frame, those of stream 0 too; with CallBuilderOptions::keep_frames
  std::vector<Setting> client_settings;  // the first SETTINGS of each side, in order
  std::vector<Setting> server_settings;
  uint32_t client_window_increment = 0;  // WINDOW_UPDATE on stream 0 before the first HEADERS
  uint64_t bytes[2] = {0, 0};            // by direction
  uint64_t gap_bytes = 0;                // not recorded, as Gap records say
  uint64_t missing_bytes = 0;            // in neither chunk nor Gap: parts of the file are missing
  int64_t downstream_rtt_ns = 0;         // the smallest TcpInfo knows; 0: unknown
  std::vector<Unreadable> unreadable;
};

struct RecordedCapture {
  std::string file;
  capture::CaptureStart start;
  std::vector<RecordedConnection> connections;  // by id
  std::vector<capture::Gap> gaps;
  std::vector<Damage> damage;  // what the reader could not read
};

// Reads everything that can be read. Errors only where the file cannot be opened.
Result<RecordedCapture> read_capture(const std::string& file, const CallBuilderOptions& options);
RecordedCapture read_capture(CaptureReader& reader, const CallBuilderOptions& options);

// RFC 3339 UTC with nanoseconds of a time on that capture's clock: "2026-12-01T03:12:45.000000001Z".
std::string absolute_time(const capture::CaptureStart& start, int64_t time_ns);

}  // namespace ztape::http2
