// A whole connection out of a capture: its opening, its calls, its close. What `show`, `replay` and `serve` start from.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "capture-format/reader.h"
#include "http2/call.h"
#include "http2/call_builder.h"
#include "http2/first_bytes.h"
#include "proto/capture.pb.h"
#include "proto/histogram.h"

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
  // It was open before this file: so many bytes of each direction are in earlier ones.
  bool began_earlier = false;
  uint64_t earlier_bytes[2] = {0, 0};
  uint64_t missing_bytes = 0;     // in neither chunk nor Gap: parts of the file are missing
  int64_t downstream_rtt_ns = 0;  // the smallest TcpInfo knows; 0: unknown
  std::vector<Unreadable> unreadable;
  int64_t last_ns = 0;  // of its last read

  // What it speaks; with CallBuilderOptions::not_only_grpc.
  Wire wire = Wire::undecided;
  std::string changed_to;      // by an HTTP/1 upgrade, as "h2c", "websocket"; or ""
  std::string http1_lost;      // why HTTP/1 could not be followed to its end, or ""
  std::string first_bytes[2];  // by direction: up to kKeptBeginningBytes of what is not HTTP/2
};

// How late the recorder itself was (capture.proto, LoopLag): a time may be too late by so much.
struct RecordedLag {
  Histogram turns;
  int64_t max_ns = 0;  // of turns, and of timers that came late
};

struct RecordedCapture {
  std::string file;
  capture::CaptureStart start;
  std::vector<RecordedConnection> connections;  // by id
  std::vector<capture::Gap> gaps;
  RecordedLag loop_lag;        // no turns: not recorded
  std::vector<Damage> damage;  // what the reader could not read
};

// Gets what a capture brings at once, instead of its being kept.
class CaptureWatcher {
 public:
  virtual ~CaptureWatcher() = default;
  virtual void on_call(const RecordedConnection& /*connection*/, Call&& /*call*/) {}
  virtual void on_frame(const RecordedConnection& /*connection*/, const Frame& /*frame*/) {}  // with keep_frames
};

class ConnectionCollector;

// Makes connections and calls out of records, as they come.
class CaptureCollector {
 public:
  // With a watcher, that gets the calls as they end; of the connections nothing is kept once they are closed.
  explicit CaptureCollector(const CallBuilderOptions& options, CaptureWatcher* watcher = nullptr);
  ~CaptureCollector();

  void take(const capture::Record& record);
  // Gives the watcher the calls that ended before that time, without waiting for what may still cross their end.
  void settle(int64_t time_ns);
  // The calls that are open go to the watcher, as such; without one, everything is here: all but `file` and `damage`.
  RecordedCapture finish();

  [[nodiscard]] int64_t last_ns() const { return last_ns_; }  // of the last read
  [[nodiscard]] const capture::CaptureStart& start() const { return recorded_.start; }

 private:
  ConnectionCollector& connection(ConnectionId id);

  CallBuilderOptions options_;
  CaptureWatcher* watcher_;
  RecordedCapture recorded_;
  std::map<ConnectionId, std::unique_ptr<ConnectionCollector>> connections_;
  int64_t last_ns_ = 0;
};

// Reads everything that can be read. Errors only where the file cannot be opened.
Result<RecordedCapture> read_capture(const std::string& file, const CallBuilderOptions& options);
RecordedCapture read_capture(CaptureReader& reader, const CallBuilderOptions& options);

// RFC 3339 UTC with nanoseconds of a time on that capture's clock: "2026-12-01T03:12:45.000000001Z".
std::string absolute_time(const capture::CaptureStart& start, int64_t time_ns);

}  // namespace ztape::http2
