#include "capture-format/verify.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "proto/words.h"

namespace ztape {
namespace {

struct FreeHash {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

// One direction of an open connection: what its chunks came to, and which bytes no chunk has brought.
struct DirectionTally {
  uint64_t next_offset = 0;
  uint64_t bytes = 0;
  capture::End end = capture::NOT_ENDED;
  std::unique_ptr<XXH3_state_t, FreeHash> hash{XXH3_createState()};
  bool has_gap = false;
  struct Hole {
    uint64_t begin;
    uint64_t end;
  };
  std::vector<Hole> holes;  // seen in the offsets, not yet explained by a Gap

  DirectionTally() { XXH3_64bits_reset(hash.get()); }

  // Takes [begin, end) out of the holes.
  void explain(uint64_t begin, uint64_t end_offset) {
    std::vector<Hole> left;
    for (const auto& hole : holes) {
      if (hole.begin < std::min(hole.end, begin)) left.push_back({hole.begin, std::min(hole.end, begin)});
      if (std::max(hole.begin, end_offset) < hole.end) left.push_back({std::max(hole.begin, end_offset), hole.end});
    }
    holes = std::move(left);
  }
};

using ConnectionTally = std::array<DirectionTally, 2>;

class Verifier {
 public:
  explicit Verifier(VerifyReport& report) : report_(report) {}

  void take(const capture::Record& record) {
    using capture::Record;
    ++report_.records;
    switch (record.kind_case()) {
      case Record::kCaptureStart:
        if (report_.records != 1) fault(0, "a second CaptureStart");
        return;
      case Record::kConnectionOpen: return take(record.connection_open());
      case Record::kConnectionState: return take(record.connection_state());
      case Record::kChunk: return take(record.chunk());
      case Record::kGap: return take(record.gap());
      case Record::kConnectionClose: return take(record.connection_close());
      case Record::kMark: report_.marks.push_back(record.mark().text()); return;
      default: return;
    }
  }

  void finish() {
    for (const auto& [connection, tally] : open_) {
      ++report_.connections_open;
      settle(connection, tally);
    }
    std::ranges::sort(report_.faults, {}, &ConnectionFault::connection);
  }

 private:
  void fault(uint64_t connection, std::string message) {
    report_.faults.push_back({.connection = connection, .message = std::move(message)});
  }

  void take(const capture::ConnectionOpen& open) {
    ++report_.connections;
    const uint64_t connection = open.connection();
    if (closed_.contains(connection) || !open_.try_emplace(connection).second) {
      fault(connection, "opened twice");
    }
  }

  // A connection that was open before this file began: its offsets start here.
  void take(const capture::ConnectionState& state) {
    const uint64_t connection = state.connection();
    const auto [at, is_new] = open_.try_emplace(connection);
    if (!state.continued() && !is_new) {
      // How a direction ended may have been in what was not recorded.
      const capture::End ends[] = {state.client_to_server().end(), state.server_to_client().end()};
      for (const auto direction : kDirections) {
        if (ends[index(direction)] != capture::NOT_ENDED) at->second[index(direction)].end = ends[index(direction)];
      }
      return;
    }
    auto& tally = at->second;
    if (state.continued()) ++report_.connections_continued;
    for (const auto direction : kDirections) {
      const auto& from = direction == Direction::client_to_server ? state.client_to_server() : state.server_to_client();
      auto& sum = tally[index(direction)];
      if (sum.next_offset != 0 || sum.end != capture::NOT_ENDED) {
        fault(connection, std::string(name(direction)) + ": continued from an earlier file after bytes of this one");
      }
      sum.next_offset = from.offset();
      sum.end = from.end();
    }
  }

  void take(const capture::Chunk& chunk) {
    const uint64_t connection = chunk.connection();
    const auto direction =
        chunk.direction() == capture::SERVER_TO_CLIENT ? Direction::server_to_client : Direction::client_to_server;
    report_.chunk_bytes += chunk.bytes().size();
    auto at = open_.find(connection);
    if (at == open_.end()) {
      fault(connection,
            closed_.contains(connection) ? "bytes after its ConnectionClose" : "bytes before it was opened");
      at = open_.try_emplace(connection).first;
      at->second[index(direction)].next_offset = chunk.offset();
    }
    auto& tally = at->second[index(direction)];
    if (chunk.offset() < tally.next_offset) {
      fault(connection, std::string(name(direction)) + ": a chunk at offset " + std::to_string(chunk.offset()) +
                            ", but the bytes up to " + std::to_string(tally.next_offset) + " were there already");
    } else if (chunk.offset() > tally.next_offset) {
      if (gap_of_any_) {
        tally.has_gap = true;
      } else {
        tally.holes.push_back({tally.next_offset, chunk.offset()});
      }
    }
    tally.next_offset = chunk.offset() + chunk.bytes().size();
    tally.bytes += chunk.bytes().size();
    if (!chunk.bytes().empty()) XXH3_64bits_update(tally.hash.get(), chunk.bytes().data(), chunk.bytes().size());
    if (chunk.end() != capture::NOT_ENDED) tally.end = chunk.end();
  }

  void take(const capture::Gap& gap) {
    ++report_.gaps;
    report_.gap_bytes += gap.bytes();
    if (gap.connection() == 0) {
      // Of no connection, so of any: whatever is not there may have been in it.
      gap_of_any_ = true;
      for (auto& [connection, tally] : open_) {
        for (auto& direction : tally) {
          direction.has_gap = direction.has_gap || !direction.holes.empty();
          direction.holes.clear();
        }
      }
      return;
    }
    auto& tally = open_[gap.connection()][gap.direction() == capture::SERVER_TO_CLIENT ? 1 : 0];
    const uint64_t end = gap.offset() + gap.bytes();
    tally.explain(gap.offset(), end);
    // Before the chunk that goes on behind it.
    if (gap.offset() <= tally.next_offset && end > tally.next_offset) tally.next_offset = end;
    tally.has_gap = tally.has_gap || gap.bytes() > 0;
  }

  void take(const capture::ConnectionClose& close) {
    const uint64_t connection = close.connection();
    const auto at = open_.find(connection);
    if (at == open_.end()) {
      fault(connection, closed_.contains(connection) ? "closed twice" : "closed, but never opened");
      return;
    }
    const auto& tally = at->second;
    bool proven = settle(connection, tally);
    proven &= matches(connection, Direction::client_to_server, tally, close.client_to_server());
    proven &= matches(connection, Direction::server_to_client, tally, close.server_to_client());
    if (proven) {
      ++report_.connections_proven;
      if (tally[0].has_gap || tally[1].has_gap) ++report_.connections_with_gaps;
    }
    open_.erase(at);
    closed_.insert(connection);
  }

  bool matches(uint64_t connection, Direction direction, const ConnectionTally& tally,
               const capture::DirectionTotal& total) {
    const auto& sum = tally[index(direction)];
    const std::string where = std::string(name(direction)) + ": ";
    if (sum.bytes != total.bytes()) {
      fault(connection,
            where + std::to_string(sum.bytes) + " bytes are here, " + std::to_string(total.bytes()) + " were recorded");
      return false;
    }
    if (XXH3_64bits_digest(sum.hash.get()) != total.xxh3_64()) {
      fault(connection, where + "the bytes do not match their hash");
      return false;
    }
    if (sum.end != total.end()) {
      fault(connection, where + "the chunks end with " + capture::End_Name(sum.end) + ", the connection with " +
                            capture::End_Name(total.end()));
      return false;
    }
    return true;
  }

  // No hole is left.
  bool settle(uint64_t connection, const ConnectionTally& tally) {
    bool whole = true;
    for (const auto direction : kDirections) {
      for (const auto& hole : tally[index(direction)].holes) {
        whole = false;
        fault(connection, std::string(name(direction)) + ": the bytes from " + std::to_string(hole.begin) + " to " +
                              std::to_string(hole.end) + " are missing, and no Gap says why");
      }
    }
    return whole;
  }

  VerifyReport& report_;
  std::unordered_map<uint64_t, ConnectionTally> open_;
  std::unordered_set<uint64_t> closed_;
  bool gap_of_any_ = false;
};

}  // namespace

// What could not be read is no fault of the file, as far as anybody knows.
static bool is_incomplete(const Damage& damage) {
  return damage.code == ErrorCode::torn || damage.code == ErrorCode::io;
}

bool VerifyReport::torn() const {
  return std::ranges::any_of(damage, is_incomplete);
}

bool VerifyReport::corrupt() const {
  return !faults.empty() || !std::ranges::all_of(damage, is_incomplete);
}

VerifyReport verify(CaptureReader& reader) {
  VerifyReport report;
  Verifier verifier(report);
  while (const auto* record = reader.next()) verifier.take(*record);
  verifier.finish();
  report.blocks = reader.blocks_read();
  report.damage = reader.damage();
  return report;
}

Result<VerifyReport> verify(const std::string& path) {
  auto reader = CaptureReader::open(path);
  if (!reader) return std::unexpected(std::move(reader.error()));
  return verify(**reader);
}

}  // namespace ztape
