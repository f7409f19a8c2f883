#include "proxy/tracked_connection.h"

#include <algorithm>
#include <utility>

namespace ztape::proxy {

void Stretch::add(uint64_t offset, uint64_t more_bytes, uint64_t more_records, int64_t first_time_ns,
                  int64_t last_time_ns) {
  if (empty()) {
    begin = offset;
    first_ns = first_time_ns;
  }
  bytes = offset + more_bytes - begin;
  records += more_records;
  last_ns = last_time_ns;
}

void Stretch::add_behind(const Stretch& other) {
  if (!other.empty()) add(other.begin, other.bytes, other.records, other.first_ns, other.last_ns);
}

bool TrackedConnection::missed_something() const {
  return open_missed || state_due || close || !parts[0].missed.empty() || !parts[1].missed.empty();
}

void TrackedConnection::block_written() {
  in_list = false;
  open_in_block = false;
  for (auto& each : parts) each.in_block = {};
}

void TrackedConnection::drop_block() {
  in_list = false;
  block_dropped = true;
  open_missed = open_missed || std::exchange(open_in_block, false);
  for (auto& each : parts) {
    Stretch all = std::exchange(each.in_block, {});
    all.add_behind(each.missed);
    each.missed = all;
  }
}

void TrackedConnection::fill_state(capture::Record& record, int64_t time_ns, bool continued) const {
  auto& state = *record.mutable_connection_state();
  state.set_connection(id);
  state.set_time_ns(time_ns);
  state.set_continued(continued);
  if (tap) tap->save(state);
  for (const auto direction : kDirections) {
    auto& out = direction == Direction::client_to_server ? *state.mutable_client_to_server()
                                                         : *state.mutable_server_to_client();
    // The tap does not see what a full queue left out, and so does not count it.
    out.set_offset(parts[index(direction)].next);
    if (!tap) out.set_unreadable_reason("it ended while nothing could be written");  // nothing of it follows
  }
  state.mutable_client_to_server()->set_end(parts[0].end);
  state.mutable_server_to_client()->set_end(parts[1].end);
  for (const auto& sample : tcp_info) {
    if (sample.connection() != 0) *state.add_tcp_info() = sample;
  }
}

std::optional<capture::Record> TrackedConnection::take_gap(Direction direction, const std::string& reason) {
  auto& at = part(direction);
  if (at.missed.empty()) return std::nullopt;
  capture::Record record;
  auto& gap = *record.mutable_gap();
  gap.set_connection(id);
  gap.set_direction(static_cast<capture::Direction>(direction));
  gap.set_offset(at.missed.begin);
  gap.set_bytes(at.missed.bytes);
  gap.set_records(at.missed.records);
  gap.set_first_ns(at.missed.first_ns);
  gap.set_last_ns(at.missed.last_ns);
  gap.set_reason(reason);
  at.in_block.add_behind(at.missed);
  at.missed = {};
  state_due = true;
  return record;
}

}  // namespace ztape::proxy
