#include "tests/proxy/recorded_fixture.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <tuple>

#include "capture-format/reader.h"
#include "http2/recorded_connection.h"
#include "tests/support/calls.h"

namespace ztape::test {

std::vector<proxy::QueuedRecord> records_of(const std::vector<FixtureConnection>& connections, std::size_t longest) {
  std::vector<std::tuple<int64_t, proxy::QueuedRecord>> timed;
  for (const auto& connection : connections) {
    const auto id = static_cast<ConnectionId>(connection.number);
    const auto put = [&](int64_t time_ns, capture::Record record) {
      timed.emplace_back(time_ns, proxy::QueuedRecord(std::move(record)));
    };
    capture::Record open;
    open.mutable_connection_open()->set_connection(id);
    open.mutable_connection_open()->set_downstream_peer("192.0.2.1:" + std::to_string(1000 + id));
    put(0, open);
    for (const auto& row : connection.chunks) {
      if (row.eof) {
        capture::Record end;
        auto& chunk = *end.mutable_chunk();
        chunk.set_connection(id);
        chunk.set_direction(static_cast<capture::Direction>(row.direction));
        chunk.set_offset(connection.bytes[index(row.direction)].size());
        chunk.set_time_ns(row.time_ns);
        chunk.set_end(capture::FIN);
        put(row.time_ns, end);
        continue;
      }
      for (std::size_t at = 0; at < row.length; at += longest) {
        proxy::QueuedRecord piece;
        piece.connection = id;
        piece.direction = row.direction;
        piece.offset = row.offset + at;
        piece.time_ns = row.time_ns;
        piece.bytes = net::Slice::copy_of(std::string_view(connection.bytes[index(row.direction)])
                                              .substr(row.offset + at, std::min(longest, row.length - at)));
        timed.emplace_back(row.time_ns, std::move(piece));
      }
    }
    capture::Record close;
    close.mutable_connection_close()->set_connection(id);
    close.mutable_connection_close()->set_time_ns(connection.close_ns);
    close.mutable_connection_close()->set_first_side(capture::DOWNSTREAM);
    put(connection.close_ns, close);
  }
  std::ranges::stable_sort(timed, {}, [](const auto& each) { return std::get<0>(each); });
  std::vector<proxy::QueuedRecord> records;
  for (auto& [time, record] : timed) records.push_back(std::move(record));
  return records;
}

CallSummaries calls_of_files(const std::vector<std::string>& files) {
  CallSummaries calls;
  for (const auto& file : files) {
    const auto capture = http2::read_capture(file, {});
    if (!capture) throw std::runtime_error(capture.error().line());
    for (const auto& connection : capture->connections) {
      for (const auto& call : connection.calls) {
        calls[{connection.id, call.stream}] = summary_of(call, true).dump();
      }
    }
  }
  return calls;
}

CallSummaries calls_of(const std::vector<FixtureConnection>& connections) {
  CallSummaries calls;
  for (const auto& connection : connections) {
    for (const auto& call : connection.calls) {
      calls[{static_cast<ConnectionId>(connection.number), call["stream"].get<uint32_t>()}] =
          expected_summary(call, true).dump();
    }
  }
  return calls;
}

std::map<std::pair<ConnectionId, int>, std::string> bytes_of_files(const std::vector<std::string>& files) {
  std::map<std::pair<ConnectionId, int>, std::string> bytes;
  for (const auto& file : files) {
    auto reader = CaptureReader::open(file);
    if (!reader) throw std::runtime_error(reader.error().line());
    while (const auto* record = (*reader)->next()) {
      if (!record->has_chunk()) continue;
      auto& all = bytes[{record->chunk().connection(), record->chunk().direction()}];
      if (record->chunk().offset() != all.size()) throw std::runtime_error(file + ": a chunk in another place");
      all += record->chunk().bytes();
    }
  }
  return bytes;
}

std::vector<std::string> capture_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".ztape") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace ztape::test
