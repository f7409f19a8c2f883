#include "report/capture_page.h"

#include <algorithm>
#include <array>
#include <map>

#include "diagnose/silent_gaps.h"
#include "proto/method_table.h"
#include "report/lag_line.h"
#include "report/tls_line.h"

namespace ztape::report {
namespace {

using Align = Table::Align;

std::string clock_of(const http2::RecordedCapture& capture, int64_t time_ns) {
  return http2::absolute_time(capture.start, time_ns).substr(11, 12);  // HH:MM:SS.mmm
}

std::string how_it_ended(const http2::RecordedConnection& connection) {
  if (connection.close_ns < 0) return "still open";
  if (!connection.close.error().empty()) return escaped(connection.close.error(), 80);
  switch (connection.close.first_side()) {
    case capture::DOWNSTREAM: return "wallet closed";
    case capture::UPSTREAM: return "indexer closed";
    default: return "recorder ended";
  }
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

struct MethodSummary {
  uint64_t calls = 0;
  uint64_t messages = 0;
  uint64_t bytes = 0;
  std::vector<int64_t> durations_ns;
  std::map<std::string, uint64_t> outcomes;
};

using Connections = std::vector<const http2::RecordedConnection*>;

std::string connections_table(const http2::RecordedCapture& capture, const Connections& connections,
                              std::size_t width) {
  Table table({{"connection", Align::right},
               {"wallet", Align::left, 2},
               {"from", Align::left, 5},
               {"speaks", Align::left, 1},
               {"opened (UTC)", Align::left, 3},
               {"open for", Align::right},
               {"calls", Align::right},
               {"sent", Align::right},
               {"received", Align::right},
               {"ended"}});
  constexpr std::size_t kMostRows = 20;
  for (std::size_t i = 0; i < std::min(kMostRows, connections.size()); ++i) {
    const auto& connection = *connections[i];
    const int64_t last_ns = connection.close_ns >= 0   ? connection.close_ns
                            : connection.reads.empty() ? connection.open_ns
                                                       : connection.reads.back().time_ns;
    table.row({std::to_string(connection.id), or_dash(escaped(connection.open.downstream_peer(), 60)),
               or_dash(escaped(connection.open.upstream_local(), 60)), protocol_word(connection),
               clock_of(capture, connection.open_ns), duration(last_ns - connection.open_ns),
               count(connection.calls.size()), byte_count(connection.bytes[0]), byte_count(connection.bytes[1]),
               how_it_ended(connection)});
  }
  std::string text = table.text(width);
  if (connections.size() > kMostRows) {
    text += "  ... and " + count(connections.size() - kMostRows) + " more (--json lists them all)\n";
  }
  return text;
}

std::string methods_table(const Connections& connections, std::size_t width) {
  std::map<std::string, MethodSummary> methods;
  for (const auto* connection : connections) {
    for (const auto& call : connection->calls) {
      auto& method = methods[escaped(method_name(call), 60)];
      ++method.calls;
      method.messages += call.response_message_count;
      method.bytes += content_bytes(call, Direction::server_to_client);
      ++method.outcomes[outcome(call)];
      if (call.end_ns >= 0 && call.start_ns >= 0) method.durations_ns.push_back(call.end_ns - call.start_ns);
    }
  }
  Table table({{"method"},
               {"calls", Align::right},
               {"messages", Align::right, 1},
               {"bytes", Align::right},
               {"median ms", Align::right},
               {"max ms", Align::right},
               {"outcome"}});
  for (auto& [name, method] : methods) {
    std::string outcomes;
    for (const auto& [word, times] : method.outcomes) {
      if (!outcomes.empty()) outcomes += ", ";
      outcomes += count(times) + " " + word;
    }
    std::ranges::sort(method.durations_ns);
    const auto& durations = method.durations_ns;
    table.row({name, count(method.calls), count(method.messages), byte_count(method.bytes),
               durations.empty() ? "-" : milliseconds(durations[durations.size() / 2]),
               durations.empty() ? "-" : milliseconds(durations.back()), outcomes});
  }
  return table.empty() ? "" : table.text(width);
}

// Each hop for itself: a call of one may be the cause of a call of the other, and adding them up would say nothing.
std::string routes(const http2::RecordedCapture& capture, std::size_t width) {
  std::map<std::string, Connections> by_route;
  for (const auto& connection : capture.connections) by_route[route(connection.open)].push_back(&connection);
  std::string text;
  for (const auto& [name, connections] : by_route) {
    if (!name.empty()) {
      text += "Route " + name;
      if (by_route.size() > 1) {
        std::size_t calls = 0;
        for (const auto* connection : connections) calls += connection->calls.size();
        text += ": " + counted(connections.size(), "connection") + ", " + counted(calls, "call");
      }
      text += "\n";
    }
    text += connections_table(capture, connections, width) + "\n";
    if (const auto methods = methods_table(connections, width); !methods.empty()) text += methods + "\n";
  }
  return text;
}

std::string not_grpc(const http2::RecordedCapture& capture) {
  std::string text;
  constexpr std::size_t kMostNotes = 20;
  std::size_t notes = 0;
  for (const auto& connection : capture.connections) {
    const auto note = protocol_note(connection);
    if (note.empty() || ++notes > kMostNotes) continue;
    text += "Connection " + std::to_string(connection.id) + ": " + note + "\n";
  }
  if (notes > kMostNotes)
    text += "... and " + count(notes - kMostNotes) + " more connections that are not gRPC (--json)\n";
  return text;
}

// The line about the floor, or "".
std::string silence_line(const http2::RecordedCapture& capture) {
  uint64_t gap_count = 0;
  int64_t gap_ns = 0;
  int64_t open_ns = 0;
  for (const auto& connection : capture.connections) {
    const auto gaps = diagnose::silent_gaps(connection);
    if (gaps.empty()) continue;
    gap_count += gaps.size();
    gap_ns += diagnose::total_ns(gaps);
    if (connection.close_ns >= 0) open_ns += connection.close_ns - connection.open_ns;
  }
  if (gap_count == 0) return "";
  return "Silence: " + counted(gap_count, "gap") + " of 35-60 ms inside calls, " + duration(gap_ns) + " of the " +
         duration(open_ns) +
         " that their connections were open.\nThat is consistent with Nagle's algorithm waiting for a delayed ACK at "
         "the indexer.\n";
}

// Of a file that is not the first of its run: what its connections had behind them.
std::string earlier_lines(const http2::RecordedCapture& capture) {
  std::size_t connections = 0;
  uint64_t bytes = 0;
  for (const auto& connection : capture.connections) {
    if (!connection.began_earlier) continue;
    ++connections;
    bytes += connection.earlier_bytes[0] + connection.earlier_bytes[1];
  }
  if (connections == 0) return "";
  return counted(connections, "connection") + " began in an earlier file of this recording: " + byte_count(bytes) +
         " of them are there.\n";
}

std::string not_readable(const http2::RecordedCapture& capture) {
  std::string text;
  for (const auto& connection : capture.connections) {
    // Of what is not HTTP/2 there are no frames, and its note says what it is.
    const bool noted = connection.wire != http2::Wire::undecided && !protocol_note(connection).empty();
    for (const auto& lost : connection.unreadable) {
      if (noted && connection.changed_to != "h2c" && lost.reason.starts_with("not HTTP/2")) continue;
      text += "Connection " + std::to_string(connection.id) + ", " + std::string(name(lost.direction)) + ": no " +
              (lost.headers_only ? "headers" : "frames") + " from offset " + std::to_string(lost.offset) +
              " on: " + escaped(lost.reason, 200) + "\n";
    }
  }
  return text;
}

std::string not_recorded(const http2::RecordedCapture& capture) {
  std::string text;
  for (const auto& gap : capture.gaps) {
    text += "Not recorded: " + byte_count(gap.bytes()) + " of connection " + std::to_string(gap.connection()) + ", " +
            std::string(name(static_cast<Direction>(gap.direction()))) + ", from offset " +
            std::to_string(gap.offset()) + ": " + escaped(gap.reason(), 200) + "\n";
  }
  for (const auto& connection : capture.connections) {
    if (connection.missing_bytes == 0) continue;
    text += "Missing: " + byte_count(connection.missing_bytes) + " of connection " + std::to_string(connection.id) +
            " are not in the capture, and no record says why\n";
  }
  for (const auto& damage : capture.damage) {
    text += "Damaged (" + std::string(kind(damage)) + ") at offset " + std::to_string(damage.offset) + ": " +
            damage.message + "\n";
  }
  return text;
}

}  // namespace

std::string capture_page(const http2::RecordedCapture& capture, const std::string& only, std::size_t width) {
  std::size_t calls = 0;
  for (const auto& connection : capture.connections) calls += connection.calls.size();
  const bool start_known = capture.start.format_version() != 0;  // block 0 may be damaged
  std::string page = capture.file + ": ";
  page += start_known ? "recorded " + http2::absolute_time(capture.start, 0).substr(0, 19) + "Z by ztape " +
                            escaped(capture.start.tool_version(), 40) + " (" + escaped(capture.start.source(), 60) + ")"
                      : std::string("its start cannot be read");
  page += ", " + counted(capture.connections.size(), "connection") + ", " + counted(calls, "call") + "\n";
  if (!only.empty()) page += "Only " + only + "; bytes and times of a connection are those of all of it.\n";
  page += "\n" + routes(capture, width);
  page += not_grpc(capture);
  page += tls_lines(capture);
  page += silence_line(capture);
  page += lag_line(capture.loop_lag.turns, capture.loop_lag.max_ns);
  page += earlier_lines(capture);
  page += not_readable(capture);
  const auto missing = not_recorded(capture);
  page += missing.empty() ? "Lost: nothing.\n" : missing;
  return page;
}

namespace {

std::vector<Table::Column> call_columns() {
  return {{"conn", Align::right},
          {"stream", Align::right},
          {"method"},
          {"start ms", Align::right},
          {"first byte ms", Align::right, 4},
          {"total ms", Align::right},
          {"sent", Align::right, 3},
          {"messages", Align::right, 1},
          {"received", Align::right, 2},
          {"wallet", Align::left, 6},
          {"user agent", Align::left, 5},
          {"from", Align::left, 7},
          {"outcome"}};
}

std::vector<std::string> call_cells(const http2::RecordedConnection& connection, const http2::Call& call) {
  const auto from_start = [&](int64_t time_ns) {
    return time_ns < 0 || call.start_ns < 0 ? std::string("-") : milliseconds(time_ns - call.start_ns);
  };
  std::string end = outcome(call);
  if (call.began_earlier) end += " (began in an earlier file)";
  if (call.grpc_message && !call.grpc_message->empty()) end += ": " + escaped(*call.grpc_message, 80);
  const auto* agent = http2::find_header(call.request_headers, "user-agent");
  return {std::to_string(connection.id),
          std::to_string(call.stream),
          escaped(method_name(call), 60),
          call.start_ns < 0 ? "-" : milliseconds(call.start_ns - connection.open_ns),
          from_start(call.first_byte_ns),
          from_start(call.end_ns),
          byte_count(content_bytes(call, Direction::client_to_server)),
          count(call.response_message_count),
          byte_count(content_bytes(call, Direction::server_to_client)),
          or_dash(escaped(connection.open.downstream_peer(), 60)),
          agent ? escaped(*agent, 40) : "-",
          or_dash(escaped(connection.open.upstream_local(), 60)),
          end};
}

std::vector<Table::Column> frame_columns() {
  return {{"conn", Align::right},
          {"ms", Align::right},
          {"direction"},
          {"stream", Align::right},
          {"type"},
          {"flags", Align::right},
          {"length", Align::right},
          {"offset", Align::right, 1}};
}

std::vector<std::string> frame_cells(const http2::RecordedConnection& connection, const http2::Frame& frame) {
  return {std::to_string(connection.id),      milliseconds(frame.last_byte_ns - connection.open_ns),
          std::string(name(frame.direction)), std::to_string(frame.stream),
          http2::frame_type_name(frame.type), std::to_string(frame.flags),
          std::to_string(frame.length),       std::to_string(frame.offset)};
}

}  // namespace

std::string calls_page(const http2::RecordedCapture& capture, std::size_t width) {
  Table table(call_columns(), "");
  for (const auto& connection : capture.connections) {
    for (const auto& call : connection.calls) table.row(call_cells(connection, call));
  }
  return table.text(width);
}

std::string frames_page(const http2::RecordedConnection& connection, const std::vector<http2::Frame>& frames,
                        std::size_t width) {
  Table table(frame_columns(), "");
  for (const auto& frame : frames) table.row(frame_cells(connection, frame));
  return table.text(width);
}

CallLines::CallLines(std::size_t width) : table_(call_columns(), {4, 6, 24, 8, 13, 8, 8, 8, 8, 21, 24, 21, 7}, width) {}

std::string CallLines::line(const http2::RecordedConnection& connection, const http2::Call& call) {
  return table_.row(call_cells(connection, call));
}

FrameLines::FrameLines(std::size_t width) : table_(frame_columns(), {4, 9, 16, 6, 13, 5, 6, 10}, width) {}

std::string FrameLines::line(const http2::RecordedConnection& connection, const http2::Frame& frame) {
  return table_.row(frame_cells(connection, frame));
}

}  // namespace ztape::report
