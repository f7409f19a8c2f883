// What a capture holds of the traffic, read chunk by chunk.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/capture.pb.h"
#include "proto/words.h"

namespace ztape::test {

struct RecordedTraffic {
  struct Connection {
    capture::ConnectionOpen open;
    std::string bytes[2];  // by direction
    std::vector<capture::Chunk> ends;
    std::vector<capture::TcpInfo> tcp_infos;
    std::map<uint32_t, uint64_t> frames[2];  // Frame records of each type, by direction
    uint64_t header_blocks = 0;
    bool closed = false;
    capture::ConnectionClose close;
  };
  capture::CaptureStart start;
  std::map<ConnectionId, Connection> connections;
  std::vector<capture::Gap> gaps;
  std::vector<capture::ConnectionState> states;
  std::vector<capture::LoopLag> loop_lags;
  uint64_t clock_anchors = 0;
  bool whole = false;  // no damage at all
};

// Throws std::runtime_error where it is no capture, or where a chunk does not follow the one before it and no Gap says
// why.
RecordedTraffic read_traffic(const std::string& capture_file);

}  // namespace ztape::test
