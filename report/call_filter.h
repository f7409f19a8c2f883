// Which connections, calls and frames of a capture are wanted: the filters of `ztape show`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http2/recorded_connection.h"

namespace ztape::report {

// A point in time as a person gives it.
struct Moment {
  bool absolute = false;  // nanoseconds of CLOCK_REALTIME; otherwise from the capture's opening
  int64_t ns = 0;
};

// Each list is "any of these"; an empty one leaves nothing out. A call has the time of its start, a frame that of its
// last byte; `until` itself is outside, so that windows laid side by side have each call once.
struct CallFilter {
  std::vector<uint64_t> connections = {};
  std::vector<uint32_t> streams = {};
  std::vector<std::string> methods = {};  // "GetBlock", "/service/GetBlock", "getblockchaininfo"
  std::optional<Moment> since = std::nullopt;
  std::optional<Moment> until = std::nullopt;
  std::optional<int64_t> slower_than_ns =
      std::nullopt;  // from start to end; a call still open counts with what it has had so far

  // Something depends on what a call is, not only on where and when it was.
  [[nodiscard]] bool by_call() const { return !methods.empty() || slower_than_ns; }
  [[nodiscard]] bool any() const { return by_call() || !connections.empty() || !streams.empty() || since || until; }
  // "GetBlock, over 40 ms, connection 3"; "" without any.
  [[nodiscard]] std::string text() const;
};

class FilteredBy {
 public:
  // The capture's clock is known once its start is.
  FilteredBy(const CallFilter& filter, const capture::CaptureStart& start);

  [[nodiscard]] bool takes(const http2::RecordedConnection& connection) const;
  [[nodiscard]] bool takes(const http2::RecordedConnection& connection, const http2::Call& call, int64_t now_ns) const;
  [[nodiscard]] bool takes(const http2::RecordedConnection& connection, const http2::Frame& frame) const;

  // Leaves out of the capture what is not wanted. Of a filter by calls those frames stay that are on their streams.
  void apply(http2::RecordedCapture& capture) const;

 private:
  [[nodiscard]] bool in_time(int64_t time_ns) const { return time_ns >= since_ns_ && time_ns < until_ns_; }

  CallFilter filter_;
  int64_t since_ns_;
  int64_t until_ns_;
};

}  // namespace ztape::report
