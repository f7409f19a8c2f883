// RecordWriter while the disk is full: what is missed is kept account of, and said in the file when there is room again
// or, in what was kept free for that, at its end.
#include <algorithm>
#include <utility>

#include "proxy/record_writer.h"

namespace ztape::proxy {
namespace {

// Connections that came and went on a full disk are kept by themselves up to here, then together.
constexpr std::size_t kMostClosed = 10'000;
// Less is not worth going on for: it would be full again at once.
constexpr std::size_t kLeastRoomBytes = 2 * 1024 * 1024;
constexpr std::size_t kStateBytes = 4096;  // about, of one connection

}  // namespace

void RecordWriter::begin_outage(const Error& error) {
  outage_.emplace();
  outage_->error = error;
  outage_->next_look = MonotonicTime{now_.ns + kRetryNs};
  if (ending_) return;
  ++report_.outages;
  report_.outage = error.line();
  options_.on_problem(error.line() + "; the traffic goes on, and recording does when there is room again");
}

void RecordWriter::keep_closed(std::unique_ptr<TrackedConnection> connection) {
  // What is in the block that waits still points to it.
  if (connection->in_list || outage_->closed.size() < kMostClosed) {
    outage_->closed.push_back(std::move(connection));
    return;
  }
  ++outage_->other_connections;
  for (const auto& part : connection->parts) {
    if (part.missed.empty()) continue;
    auto& others = outage_->others;
    if (others.empty()) others.first_ns = part.missed.first_ns;
    others.bytes += part.missed.bytes;
    others.records += part.missed.records;
    others.last_ns = std::max(others.last_ns, part.missed.last_ns);
  }
}

void RecordWriter::look_for_room(MonotonicTime now) {
  if (now < outage_->next_look) return;
  outage_->next_look = MonotonicTime{now.ns + kRetryNs};
  auto done = file_->look_for_room(kLeastRoomBytes + kStateBytes * connections_.size());
  if (done) done = file_->flush();
  if (!done) {
    if (done.error().code != ErrorCode::no_room) give_up(done.error());
    return;
  }
  block_written();
  catch_up(std::move(*std::exchange(outage_, std::nullopt)));
  if (outage_) return;
  flush();
  if (!outage_ && !ending_) options_.on_problem(run_->path() + ": there is room again, recording goes on behind a gap");
}

// Says for each connection what is missing and where it stands now. Where the room is gone again meanwhile, the rest
// waits for the next time.
void RecordWriter::catch_up(Outage over) {
  const std::string reason = "the disk was full: " + over.error.message;
  std::vector<TrackedConnection*> waiting;
  for (const auto& [id, connection] : connections_) {
    if (connection->missed_something()) waiting.push_back(connection.get());
  }
  for (const auto& connection : over.closed) waiting.push_back(connection.get());
  std::ranges::sort(waiting, {}, &TrackedConnection::id);
  for (auto* const connection : waiting) {
    if (!catch_up(*connection, reason)) break;
  }
  if (!outage_ && over.other_connections > 0) {
    capture::Record record;
    auto& gap = *record.mutable_gap();
    gap.set_bytes(over.others.bytes);
    gap.set_records(over.others.records);
    gap.set_first_ns(over.others.first_ns);
    gap.set_last_ns(over.others.last_ns);
    gap.set_reason(reason + "; " + std::to_string(over.other_connections) + " connections came and went meanwhile");
    ++loss_.gaps;
    put_record(record);
    over.other_connections = 0;
  }
  for (auto& connection : over.closed) {
    if (connection->missed_something() && outage_) {
      outage_->closed.push_back(std::move(connection));
    } else if (connection->in_list) {
      closed_in_block_.push_back(std::move(connection));
    }
  }
  if (outage_ && over.other_connections > 0) {
    outage_->others = over.others;
    outage_->other_connections = over.other_connections;
  }
}

// False: not all of it could be said.
bool RecordWriter::catch_up(TrackedConnection& connection, const std::string& reason) {
  const auto say = [&](const capture::Record& record) {
    note_in_block(connection);  // before: it may fill the block
    put_record(record);
    return !outage_ && !error_;
  };
  if (std::exchange(connection.open_missed, false)) {
    connection.open_in_block = true;
    if (!say(connection.open)) return false;
  }
  for (const auto direction : kDirections) {
    if (const auto gap = connection.take_gap(direction, reason)) {
      ++loss_.gaps;
      if (!say(*gap)) return false;
    }
  }
  const bool ends_here = ending_ && !connection.close;  // nothing follows that would have to be understood
  if (std::exchange(connection.state_due, false) && !ends_here) {
    capture::Record state;
    connection.fill_state(state, now_ - options_.opened, std::exchange(connection.continue_due, false));
    if (!say(state)) return false;
  }
  if (connection.close && !connection.block_dropped) {
    const auto close = std::move(*std::exchange(connection.close, std::nullopt));
    note_in_block(connection);
    put_close(close);
  }
  return !outage_ && !error_;
}

// The block that waits for room is given up, so that its place is there for saying what is missing.
void RecordWriter::end_in_outage() {
  loss_.chunks += in_open_block_.chunks;
  loss_.bytes += in_open_block_.bytes;
  loss_.records += in_open_block_.records;
  in_open_block_ = {};
  for (auto* const connection : in_block_) connection->drop_block();
  in_block_.clear();
  Outage over = std::move(*std::exchange(outage_, std::nullopt));
  for (auto& connection : closed_in_block_) over.closed.push_back(std::move(connection));
  closed_in_block_.clear();
  file_->drop_block();
  file_->begin_end();
  catch_up(std::move(over));
  if (outage_) give_up(std::exchange(outage_, std::nullopt)->error);
}

}  // namespace ztape::proxy
