// The page of `ztape demo`: what was recorded, what differs, what each call took, what the floor costs and what takes
// it away.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "http2/recorded_connection.h"
#include "proto/error.h"

namespace ztape::report {

// What the demo measured; every figure on the page comes from here.
struct DemoResults {
  http2::RecordedCapture recording;  // the wallet's session, recorded anew through the proxy
  // report.json of the replay, as text. Its targets, in this order: the indexer recorded from, the other one, and the
  // first again behind a proxy with --upstream-quickack read.
  std::string replay_report;
  http2::RecordedCapture cured;  // what that second proxy recorded
};

// Errors: usage, when the report is not in the form of docs/report.md.
Result<std::string> demo_page(const DemoResults& results);

}  // namespace ztape::report
