#include "report/capture_page.h"

#include <algorithm>
#include <array>
#include <map>

#include "diagnose/silent_gaps.h"
#include "proto/method_table.h"
#include "report/text.h"
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

std::string method_name(const http2::Call& call) {
  return call.path.empty() ? "(request not readable)" : escaped(short_name(call.path), 60);
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

std::string connections_table(const http2::RecordedCapture& capture) {
  Table table({{"connection", Align::right},
               {"wallet"},
               {"indexer"},
               {"opened (UTC)"},
               {"open for", Align::right},
               {"calls", Align::right},
               {"sent", Align::right},
               {"received", Align::right},
               {"ended"}});
  constexpr std::size_t kMostRows = 20;
  for (const auto& connection : capture.connections) {
    if (&connection - capture.connections.data() >= static_cast<std::ptrdiff_t>(kMostRows)) break;
    const int64_t last_ns = connection.close_ns >= 0   ? connection.close_ns
                            : connection.reads.empty() ? connection.open_ns
                                                       : connection.reads.back().time_ns;
    table.row({std::to_string(connection.id), or_dash(escaped(connection.open.downstream_peer(), 60)),
               or_dash(escaped(connection.open.upstream_peer(), 60)), clock_of(capture, connection.open_ns),
               duration(last_ns - connection.open_ns), count(connection.calls.size()), byte_count(connection.bytes[0]),
               byte_count(connection.bytes[1]), how_it_ended(connection)});
  }
  std::string text = table.text();
  if (capture.connections.size() > kMostRows) {
    text += "  ... and " + count(capture.connections.size() - kMostRows) + " more (--json lists them all)\n";
  }
  return text;
}

std::string methods_table(const http2::RecordedCapture& capture) {
  std::map<std::string, MethodSummary> methods;
  for (const auto& connection : capture.connections) {
    for (const auto& call : connection.calls) {
      auto& method = methods[method_name(call)];
      ++method.calls;
      method.messages += call.response_message_count;
      method.bytes += call.response_bytes;
      ++method.outcomes[outcome(call)];
      if (call.end_ns >= 0 && call.start_ns >= 0) method.durations_ns.push_back(call.end_ns - call.start_ns);
    }
  }
  Table table({{"method"},
               {"calls", Align::right},
               {"messages", Align::right},
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
  return table.empty() ? "" : table.text();
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

std::string lag_line(const http2::RecordedLag& lag) {
  if (lag.turns.count() == 0) return "";
  std::string text = "event loop lag: max " + duration(lag.max_ns);
  if (const auto p99 = lag.turns.quantile_ns(.99)) text += ", p99 " + duration(*p99);
  return text + "\n";
}

std::string not_readable(const http2::RecordedCapture& capture) {
  std::string text;
  for (const auto& connection : capture.connections) {
    for (const auto& lost : connection.unreadable) {
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

std::string grpc_status_name(int status) {
  static constexpr std::array kNames{
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  if (status >= 0 && status < static_cast<int>(kNames.size())) return kNames[static_cast<std::size_t>(status)];
  return "status " + std::to_string(status);
}

std::string outcome(const http2::Call& call) {
  const auto code = [&] { return call.reset_code ? " " + http2::error_code_name(*call.reset_code) : std::string(); };
  switch (call.ended_by) {
    case http2::EndedBy::trailers:
      if (call.grpc_status) return grpc_status_name(*call.grpc_status);
      return call.http_status ? "HTTP " + std::to_string(*call.http_status) + ", no grpc-status" : "no grpc-status";
    case http2::EndedBy::client_reset: return "client reset" + code();
    case http2::EndedBy::server_reset: return "server reset" + code();
    case http2::EndedBy::goaway: return "GOAWAY" + code();
    case http2::EndedBy::client_close: return "client closed";
    case http2::EndedBy::server_close: return "server closed";
    case http2::EndedBy::still_open: return "still open";
  }
  return "";
}

std::string capture_page(const http2::RecordedCapture& capture) {
  std::size_t calls = 0;
  for (const auto& connection : capture.connections) calls += connection.calls.size();
  const bool start_known = capture.start.format_version() != 0;  // block 0 may be damaged
  std::string page = capture.file + ": ";
  page += start_known ? "recorded " + http2::absolute_time(capture.start, 0).substr(0, 19) + "Z by ztape " +
                            escaped(capture.start.tool_version(), 40) + " (" + escaped(capture.start.source(), 60) + ")"
                      : std::string("its start cannot be read");
  page += ", " + counted(capture.connections.size(), "connection") + ", " + counted(calls, "call") + "\n\n";
  if (!capture.connections.empty()) page += connections_table(capture) + "\n";
  if (const auto methods = methods_table(capture); !methods.empty()) page += methods + "\n";
  page += tls_lines(capture);
  page += silence_line(capture);
  page += lag_line(capture.loop_lag);
  page += not_readable(capture);
  const auto missing = not_recorded(capture);
  page += missing.empty() ? "Lost: nothing.\n" : missing;
  return page;
}

std::string calls_page(const http2::RecordedCapture& capture) {
  Table table({{"conn", Align::right},
               {"stream", Align::right},
               {"method"},
               {"start ms", Align::right},
               {"first byte ms", Align::right},
               {"total ms", Align::right},
               {"sent", Align::right},
               {"messages", Align::right},
               {"received", Align::right},
               {"outcome"}},
              "");
  for (const auto& connection : capture.connections) {
    for (const auto& call : connection.calls) {
      const auto from_start = [&](int64_t time_ns) {
        return time_ns < 0 || call.start_ns < 0 ? std::string("-") : milliseconds(time_ns - call.start_ns);
      };
      std::string end = outcome(call);
      if (call.grpc_message && !call.grpc_message->empty()) end += ": " + escaped(*call.grpc_message, 80);
      table.row({std::to_string(connection.id), std::to_string(call.stream), method_name(call),
                 call.start_ns < 0 ? "-" : milliseconds(call.start_ns - connection.open_ns),
                 from_start(call.first_byte_ns), from_start(call.end_ns), byte_count(call.request_bytes),
                 count(call.response_message_count), byte_count(call.response_bytes), end});
    }
  }
  return table.text();
}

std::string frames_page(const http2::RecordedConnection& connection, const std::vector<http2::Frame>& frames) {
  Table table({{"conn", Align::right},
               {"ms", Align::right},
               {"direction"},
               {"stream", Align::right},
               {"type"},
               {"flags", Align::right},
               {"length", Align::right},
               {"offset", Align::right}},
              "");
  for (const auto& frame : frames) {
    table.row({std::to_string(connection.id), milliseconds(frame.last_byte_ns - connection.open_ns),
               std::string(name(frame.direction)), std::to_string(frame.stream), http2::frame_type_name(frame.type),
               std::to_string(frame.flags), std::to_string(frame.length), std::to_string(frame.offset)});
  }
  return table.text();
}

}  // namespace ztape::report
