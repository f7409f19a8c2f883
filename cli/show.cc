// ztape show: what is in a capture, for a person or as JSON.
#include <cstdio>

#include "cli/command.h"
#include "cli/show_follow.h"
#include "cli/show_options.h"
#include "http2/recorded_connection.h"
#include "report/capture_json.h"
#include "report/capture_page.h"

namespace ztape::cli {
namespace {

using What = ShowOptions::What;

void show_calls(const http2::RecordedCapture& capture, const ShowOptions& show) {
  if (!show.json) {
    std::fputs(report::calls_page(capture, show.width).c_str(), stdout);
    return;
  }
  for (const auto& connection : capture.connections) {
    for (const auto& call : connection.calls) std::printf("%s\n", report::call_json(capture, connection, call).c_str());
  }
}

void show_frames(const http2::RecordedCapture& capture, const ShowOptions& show) {
  for (const auto& connection : capture.connections) {
    if (!show.json) {
      std::fputs(report::frames_page(connection, connection.frames, show.width).c_str(), stdout);
      continue;
    }
    for (const auto& frame : connection.frames) std::printf("%s\n", report::frame_json(connection, frame).c_str());
  }
}

void show_groups(const http2::RecordedCapture& capture, const ShowOptions& show) {
  report::CallGroups groups(show.by);
  groups.add(capture);
  std::fputs((show.json ? groups.json(capture.start) + "\n" : groups.page(capture.start, show.width)).c_str(), stdout);
}

void show_summary(const http2::RecordedCapture& capture, const ShowOptions& show) {
  std::fputs(
      (show.json ? report::capture_json(capture) + "\n" : report::capture_page(capture, show.filter.text(), show.width))
          .c_str(),
      stdout);
}

// What could not be read, on stderr beside a listing; the summary page says it itself.
int damage_status(const http2::RecordedCapture& capture, bool say) {
  int status = kDone;
  for (const auto& connection : capture.connections) {
    if (connection.missing_bytes == 0) continue;
    const Error error{ErrorCode::torn,
                      std::to_string(connection.missing_bytes) + " bytes of connection " +
                          std::to_string(connection.id) + " are missing",
                      capture.file};
    status = say ? fail("show", error) : exit_status(error);
  }
  for (const auto& damage : capture.damage) {
    const Error error{damage.code, damage.message, capture.file, damage.offset};
    const int of_this = say ? fail("show", error) : exit_status(error);
    if (of_this == kIncomplete || status == kDone) status = of_this;
  }
  return status;
}

}  // namespace

int run_show(int argc, char** argv) {
  const auto show = parse_show_options(argc, argv);
  if (!show) return show.error();
  if (show->follow || show->what == What::messages) return show_as_they_come(*show);
  auto capture = http2::read_capture(
      show->file, {.keep_frames = show->what == What::frames, .keep_messages = false, .not_only_grpc = true});
  if (!capture) return fail("show", capture.error());
  report::FilteredBy(show->filter, capture->start).apply(*capture);
  switch (show->what) {
    case What::frames: show_frames(*capture, *show); break;
    case What::calls: show_calls(*capture, *show); break;
    case What::groups: show_groups(*capture, *show); break;
    case What::messages:
    case What::summary: show_summary(*capture, *show); break;
  }
  return damage_status(*capture, show->what != What::summary);
}

}  // namespace ztape::cli
