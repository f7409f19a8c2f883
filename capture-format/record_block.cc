#include "capture-format/record_block.h"

#include <algorithm>

namespace ztape {
namespace {

constexpr std::size_t kArenaFirstBytes = 64 * 1024;

google::protobuf::ArenaOptions arena_options(char* first) {
  google::protobuf::ArenaOptions options;
  options.initial_block = first;
  options.initial_block_size = kArenaFirstBytes;
  options.max_block_size = 256 * 1024;
  return options;
}

// The length before a record. False: not a varint of 32 bits.
bool read_length(std::span<const uint8_t>& bytes, uint32_t& length) {
  uint64_t value = 0;
  for (std::size_t i = 0; i < 5 && i < bytes.size(); ++i) {
    value |= static_cast<uint64_t>(bytes[i] & 0x7f) << (7 * i);
    if ((bytes[i] & 0x80) == 0) {
      if (value > UINT32_MAX) return false;
      length = static_cast<uint32_t>(value);
      bytes = bytes.subspan(i + 1);
      return true;
    }
  }
  return false;
}

// What is neither of the two directions would be an index out of bounds to whoever reads on.
bool has_known_direction(const capture::Record& record) {
  using capture::Record;
  switch (record.kind_case()) {
    case Record::kChunk: return capture::Direction_IsValid(record.chunk().direction());
    case Record::kFrame: return capture::Direction_IsValid(record.frame().direction());
    case Record::kHeaders: return capture::Direction_IsValid(record.headers().direction());
    case Record::kGap: return capture::Direction_IsValid(record.gap().direction());
    default: return true;
  }
}

}  // namespace

void TimeSpan::add(int64_t time_ns) {
  first_ns = empty ? time_ns : std::min(first_ns, time_ns);
  last_ns = empty ? time_ns : std::max(last_ns, time_ns);
  empty = false;
}

void TimeSpan::add(const TimeSpan& other) {
  if (other.empty) return;
  add(other.first_ns);
  add(other.last_ns);
}

void TimeSpan::add(const capture::Record& record) {
  using capture::Record;
  switch (record.kind_case()) {
    case Record::kCaptureStart: return add(record.capture_start().opened().time_ns());
    case Record::kConnectionOpen: return add(record.connection_open().time_ns());
    case Record::kChunk: return add(record.chunk().time_ns());
    case Record::kFrame: add(record.frame().first_byte_ns()); return add(record.frame().last_byte_ns());
    case Record::kHeaders: return add(record.headers().time_ns());
    case Record::kTcpInfo: return add(record.tcp_info().time_ns());
    case Record::kConnectionClose: return add(record.connection_close().time_ns());
    case Record::kGap: add(record.gap().first_ns()); return add(record.gap().last_ns());
    case Record::kConnectionState: return add(record.connection_state().time_ns());
    case Record::kSegment: return add(record.segment().time_ns());
    case Record::kMark: return add(record.mark().time_ns());
    case Record::kClockAnchor: return add(record.clock_anchor().time_ns());
    case Record::kLoopLag: return add(record.loop_lag().time_ns());
    case Record::KIND_NOT_SET: return;  // a kind of record that is newer than this program
  }
}

RecordBlock::RecordBlock()
    : first_bytes_(std::make_unique_for_overwrite<char[]>(kArenaFirstBytes)),
      arena_(arena_options(first_bytes_.get())) {}

bool RecordBlock::parse(std::span<const uint8_t> bytes, uint64_t count) {
  records_.clear();
  arena_.Reset();
  while (!bytes.empty()) {
    uint32_t length = 0;
    if (records_.size() == count || !read_length(bytes, length) || length == 0 || length > bytes.size()) break;
    auto* record = google::protobuf::Arena::CreateMessage<capture::Record>(&arena_);
    if (!record->ParseFromArray(bytes.data(), static_cast<int>(length)) || !has_known_direction(*record)) break;
    records_.push_back(record);
    bytes = bytes.subspan(length);
  }
  if (bytes.empty() && records_.size() == count) return true;
  records_.clear();
  return false;
}

uint64_t RecordBlock::count(std::span<const uint8_t> bytes) {
  uint64_t records = 0;
  while (!bytes.empty()) {
    uint32_t length = 0;
    if (!read_length(bytes, length) || length > bytes.size()) return UINT64_MAX;
    bytes = bytes.subspan(length);
    ++records;
  }
  return records;
}

TimeSpan RecordBlock::times() const {
  TimeSpan span;
  for (const auto* record : records_) span.add(*record);
  return span;
}

}  // namespace ztape
