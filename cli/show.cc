// ztape show: what is in a capture, for a person or as JSON.
#include <cstdio>

#include "cli/command.h"
#include "http2/recorded_connection.h"
#include "proto/method_table.h"
#include "report/capture_json.h"
#include "report/capture_page.h"

namespace ztape::cli {
namespace {

// Leaves out what the filters do not name.
void filter(http2::RecordedCapture& capture, const cxxopts::ParseResult& parsed) {
  if (parsed.count("connection")) {
    const auto wanted = parsed["connection"].as<uint64_t>();
    std::erase_if(capture.connections, [&](const auto& connection) { return connection.id != wanted; });
  }
  for (auto& connection : capture.connections) {
    if (parsed.count("stream")) {
      const auto wanted = parsed["stream"].as<uint32_t>();
      std::erase_if(connection.calls, [&](const auto& call) { return call.stream != wanted; });
      std::erase_if(connection.frames, [&](const auto& frame) { return frame.stream != wanted; });
    }
    if (parsed.count("method")) {
      const auto wanted = parsed["method"].as<std::string>();
      std::erase_if(connection.calls,
                    [&](const auto& call) { return call.path != wanted && short_name(call.path) != wanted; });
    }
  }
}

void show_calls(const http2::RecordedCapture& capture, bool json) {
  if (!json) {
    std::fputs(report::calls_page(capture).c_str(), stdout);
    return;
  }
  for (const auto& connection : capture.connections) {
    for (const auto& call : connection.calls) std::printf("%s\n", report::call_json(capture, connection, call).c_str());
  }
}

void show_frames(const http2::RecordedCapture& capture, bool json) {
  for (const auto& connection : capture.connections) {
    if (!json) {
      std::fputs(report::frames_page(connection, connection.frames).c_str(), stdout);
      continue;
    }
    for (const auto& frame : connection.frames) std::printf("%s\n", report::frame_json(connection, frame).c_str());
  }
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
  cxxopts::Options options("ztape show", "Shows what is in a capture: a summary, or its calls or frames one a line.");
  options.add_options()("r,read", "the capture, - for stdin", cxxopts::value<std::string>(), "FILE")(
      "calls", "a call a line")("frames", "a frame a line")(
      "json", "JSON: one document, with --calls and --frames an object a line")(
      "connection", "only this connection", cxxopts::value<uint64_t>(), "N")("stream", "only this stream",
                                                                             cxxopts::value<uint32_t>(), "N")(
      "method", "only calls of this method, as GetBlock or by its full path", cxxopts::value<std::string>(), "NAME");
  const auto parsed = parse(options, argc, argv, "ztape show -r sync.ztape --calls --method GetTransaction");
  if (!parsed) return parsed.error();
  if (!parsed->count("read")) return fail("show", {ErrorCode::usage, "which capture? -r FILE names it", ""});
  if (parsed->count("calls") && parsed->count("frames")) {
    return fail("show", {ErrorCode::usage, "--calls and --frames do not go together", ""});
  }
  const bool frames = parsed->count("frames") > 0;
  auto capture =
      http2::read_capture((*parsed)["read"].as<std::string>(), {.keep_frames = frames, .keep_messages = false});
  if (!capture) return fail("show", capture.error());
  filter(*capture, *parsed);
  const bool json = parsed->count("json") > 0;
  if (frames) {
    show_frames(*capture, json);
  } else if (parsed->count("calls")) {
    show_calls(*capture, json);
  } else {
    std::fputs(json ? (report::capture_json(*capture) + "\n").c_str() : report::capture_page(*capture).c_str(), stdout);
    return damage_status(*capture, false);
  }
  return damage_status(*capture, true);
}

}  // namespace ztape::cli
