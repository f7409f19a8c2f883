// A capture as a page for a person: `ztape show`.
#pragma once

#include <string>

#include "http2/recorded_connection.h"
#include "report/call_words.h"
#include "report/text.h"

namespace ztape::report {

// Each `width` is that of the terminal: columns are left out until a table fits; 0: all are there.

// What is in it at a glance: connections and calls per method, route by route, silence, and everything that is missing.
// `only` says what of the capture is shown; "": all.
std::string capture_page(const http2::RecordedCapture& capture, const std::string& only, std::size_t width);

// A call a line.
std::string calls_page(const http2::RecordedCapture& capture, std::size_t width);

// A frame a line.
std::string frames_page(const http2::RecordedConnection& connection, const std::vector<http2::Frame>& frames,
                        std::size_t width);

// The same, as they come.
class CallLines {
 public:
  explicit CallLines(std::size_t width);
  std::string head() { return table_.head(); }
  std::string line(const http2::RecordedConnection& connection, const http2::Call& call);

 private:
  RunningTable table_;
};

class FrameLines {
 public:
  explicit FrameLines(std::size_t width);
  std::string head() { return table_.head(); }
  std::string line(const http2::RecordedConnection& connection, const http2::Frame& frame);

 private:
  RunningTable table_;
};

}  // namespace ztape::report
