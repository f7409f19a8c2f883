#include "report/call_filter.h"

#include <algorithm>
#include <limits>
#include <set>

#include "proto/method_table.h"
#include "report/call_words.h"
#include "report/text.h"

namespace ztape::report {
namespace {

template <typename T>
bool is_one_of(const std::vector<T>& list, const T& value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

int64_t on_capture_clock(const Moment& moment, const capture::CaptureStart& start) {
  if (!moment.absolute) return moment.ns;
  return moment.ns - start.opened().realtime_unix_ns() + start.opened().time_ns();
}

// Of a call whose request could not be read: of what is known of it.
int64_t time_of(const http2::RecordedConnection& connection, const http2::Call& call) {
  if (call.start_ns >= 0) return call.start_ns;
  if (call.first_byte_ns >= 0) return call.first_byte_ns;
  return call.end_ns >= 0 ? call.end_ns : connection.open_ns;
}

bool has_method(const std::vector<std::string>& methods, const http2::Call& call) {
  if (methods.empty()) return true;
  const auto name = method_name(call);
  const auto json_rpc = json_rpc_methods(call.request_beginning);
  return std::ranges::any_of(methods, [&](const std::string& wanted) {
    return wanted == call.path || wanted == short_name(call.path) || wanted == name ||
           std::ranges::find(json_rpc, wanted) != json_rpc.end();
  });
}

}  // namespace

std::string CallFilter::text() const {
  std::string text;
  const auto add = [&](const std::string& words) { text += (text.empty() ? "" : ", ") + words; };
  for (const auto& method : methods) add(escaped(method, 80));
  if (slower_than_ns) add("over " + duration(*slower_than_ns));
  for (const auto id : connections) add("connection " + std::to_string(id));
  for (const auto stream : streams) add("stream " + std::to_string(stream));
  if (since || until) add("of a part of the time");
  return text;
}

FilteredBy::FilteredBy(const CallFilter& filter, const capture::CaptureStart& start)
    : filter_(filter),
      since_ns_(filter.since ? on_capture_clock(*filter.since, start) : std::numeric_limits<int64_t>::min()),
      until_ns_(filter.until ? on_capture_clock(*filter.until, start) : std::numeric_limits<int64_t>::max()) {}

bool FilteredBy::takes(const http2::RecordedConnection& connection) const {
  if (!is_one_of(filter_.connections, connection.id) || connection.open_ns >= until_ns_) return false;
  return connection.close_ns < 0 || connection.close_ns >= since_ns_;
}

bool FilteredBy::takes(const http2::RecordedConnection& connection, const http2::Call& call, int64_t now_ns) const {
  if (!is_one_of(filter_.connections, connection.id) || !is_one_of(filter_.streams, call.stream)) return false;
  if (!in_time(time_of(connection, call)) || !has_method(filter_.methods, call)) return false;
  if (!filter_.slower_than_ns) return true;
  return call.start_ns >= 0 && (call.end_ns >= 0 ? call.end_ns : now_ns) - call.start_ns > *filter_.slower_than_ns;
}

bool FilteredBy::takes(const http2::RecordedConnection& connection, const http2::Frame& frame) const {
  return is_one_of(filter_.connections, connection.id) && is_one_of(filter_.streams, frame.stream) &&
         in_time(frame.last_byte_ns);
}

void FilteredBy::apply(http2::RecordedCapture& capture) const {
  if (!filter_.any()) return;
  std::erase_if(capture.connections, [&](const auto& connection) { return !takes(connection); });
  int64_t now_ns = 0;
  for (const auto& connection : capture.connections) now_ns = std::max(now_ns, connection.last_ns);
  for (auto& connection : capture.connections) {
    std::erase_if(connection.calls, [&](const auto& call) { return !takes(connection, call, now_ns); });
    std::set<uint32_t> streams;
    for (const auto& call : connection.calls) streams.insert(call.stream);
    std::erase_if(connection.frames, [&](const auto& frame) {
      return !takes(connection, frame) || (filter_.by_call() && !streams.contains(frame.stream));
    });
  }
  if (!filter_.by_call() && filter_.streams.empty()) return;
  std::erase_if(capture.connections,
                [](const auto& connection) { return connection.calls.empty() && connection.frames.empty(); });
}

}  // namespace ztape::report
