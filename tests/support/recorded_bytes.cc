#include "tests/support/recorded_bytes.h"

#include <stdexcept>
#include <utility>

#include "capture-format/reader.h"

namespace ztape::test {

RecordedTraffic read_traffic(const std::string& capture_file) {
  auto reader = CaptureReader::open(capture_file);
  if (!reader) throw std::runtime_error(reader.error().line());
  RecordedTraffic traffic;
  std::map<std::pair<ConnectionId, int>, uint64_t> next_offset;
  while (const auto* record = (*reader)->next()) {
    if (record->has_capture_start()) traffic.start = record->capture_start();
    if (record->has_connection_open()) {
      traffic.connections[record->connection_open().connection()].open = record->connection_open();
    }
    if (record->has_chunk()) {
      const auto& chunk = record->chunk();
      auto& connection = traffic.connections[chunk.connection()];
      auto& next = next_offset[{chunk.connection(), chunk.direction()}];
      if (chunk.offset() != next) {
        throw std::runtime_error("a chunk of connection " + std::to_string(chunk.connection()) + " stands at " +
                                 std::to_string(chunk.offset()) + ", not at " + std::to_string(next));
      }
      next += chunk.bytes().size();
      connection.bytes[chunk.direction()] += chunk.bytes();
      if (chunk.end() != capture::NOT_ENDED) connection.ends.push_back(chunk);
    }
    if (record->has_gap()) {
      const auto& gap = record->gap();
      traffic.gaps.push_back(gap);
      auto& next = next_offset[{gap.connection(), gap.direction()}];
      if (gap.offset() != next) throw std::runtime_error("a gap does not begin where the bytes end");
      next += gap.bytes();
    }
    if (record->has_frame()) {
      ++traffic.connections[record->frame().connection()].frames[record->frame().direction()][record->frame().type()];
    }
    if (record->has_headers()) ++traffic.connections[record->headers().connection()].header_blocks;
    if (record->has_tcp_info()) {
      traffic.connections[record->tcp_info().connection()].tcp_infos.push_back(record->tcp_info());
    }
    if (record->has_connection_state()) traffic.states.push_back(record->connection_state());
    if (record->has_loop_lag()) traffic.loop_lags.push_back(record->loop_lag());
    if (record->has_clock_anchor()) ++traffic.clock_anchors;
    if (record->has_connection_close()) {
      auto& connection = traffic.connections[record->connection_close().connection()];
      connection.closed = true;
      connection.close = record->connection_close();
    }
  }
  traffic.whole = (*reader)->damage().empty();
  return traffic;
}

}  // namespace ztape::test
