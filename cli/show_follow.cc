#include "cli/show_follow.h"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "capture-format/run_files.h"
#include "cli/command.h"
#include "report/capture_json.h"
#include "report/capture_page.h"
#include "report/message_page.h"
#include "report/text.h"

namespace ztape::cli {
namespace {

using What = ShowOptions::What;

constexpr std::chrono::milliseconds kLook{50};
// What is under way when a stream is reset still belongs to its call: so long it is waited for.
constexpr int64_t kSettledNs = 200'000'000;
constexpr int kIdleLooks = 5;

volatile std::sig_atomic_t interrupted = 0;

// The first Ctrl-C ends the following, the second the program.
void end_on_signal() {
  struct sigaction action{};
  action.sa_handler = [](int /*number*/) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// Whoever read our output has left.
bool nobody_reads() {
  pollfd out{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

class Printer final : public http2::CaptureWatcher {
 public:
  explicit Printer(const ShowOptions& show) : show_(show), call_lines_(show.width), frame_lines_(show.width) {}

  // Of a time the capture's clock is needed.
  void start(const capture::CaptureStart& start) {
    if (filter_ && start.format_version() == capture_.start.format_version()) return;
    capture_.start = start;
    filter_.emplace(show_.filter, start);
    if (show_.json || headed_) return;
    headed_ = true;
    if (show_.what == What::calls) std::fputs(call_lines_.head().c_str(), stdout);
    if (show_.what == What::frames) std::fputs(frame_lines_.head().c_str(), stdout);
  }
  void set_file(const std::string& file) { capture_.file = file; }
  void set_now(int64_t now_ns) { now_ns_ = now_ns; }

  void on_call(const http2::RecordedConnection& connection, http2::Call&& call) override {
    if (silent_ || show_.what == What::frames || !filter_ || !filter_->takes(connection, call, now_ns_)) return;
    if (show_.what == What::messages) {
      print(show_.json ? report::call_with_messages_json(capture_, connection, call) + "\n"
                       : report::call_with_messages(connection, call, show_.width));
    } else {
      print(show_.json ? report::call_json(capture_, connection, call) + "\n" : call_lines_.line(connection, call));
    }
  }

  void on_frame(const http2::RecordedConnection& connection, const http2::Frame& frame) override {
    if (!filter_ || !filter_->takes(connection, frame)) return;
    print(show_.json ? report::frame_json(connection, frame) + "\n" : frame_lines_.line(connection, frame));
  }

  void silence() { silent_ = true; }

 private:
  static void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

  const ShowOptions& show_;
  http2::RecordedCapture capture_;  // its name and start, for the rows
  std::optional<report::FilteredBy> filter_;
  report::CallLines call_lines_;
  report::FrameLines frame_lines_;
  int64_t now_ns_ = 0;
  bool headed_ = false;
  bool silent_ = false;
};

void say_gap(const capture::Gap& gap) {
  std::fprintf(stderr, "ztape show: not recorded: %llu bytes of connection %llu: %s\n",
               static_cast<unsigned long long>(gap.bytes()), static_cast<unsigned long long>(gap.connection()),
               report::escaped(gap.reason(), 200).c_str());
}

// "Incomplete" before "corrupt", as cli.md has it.
int worse(int status, int other) {
  return other == kIncomplete || status == kDone ? other : status;
}

enum class End { of_file, by_signal, nobody_reads };

// Everything of one file, as it comes.
End show_file(const ShowOptions& show, CaptureReader& reader, http2::CaptureCollector& collector, Printer& printer) {
  int idle_looks = 0;
  while (!interrupted) {
    bool any = false;
    while (const auto* record = reader.next()) {
      any = true;
      if (record->has_gap() && show.follow) say_gap(record->gap());
      collector.take(*record);
      printer.start(collector.start());
      printer.set_now(collector.last_ns());
      if (interrupted) return End::by_signal;
    }
    if (!show.follow || reader.ended()) return End::of_file;
    idle_looks = any ? 0 : idle_looks + 1;
    const bool idle = idle_looks >= kIdleLooks;
    collector.settle(idle ? std::numeric_limits<int64_t>::max() : collector.last_ns() - kSettledNs);
    std::fflush(stdout);
    if (std::ferror(stdout) || nobody_reads()) return End::nobody_reads;
    reader.wait(kLook);
  }
  return End::by_signal;
}

// Where a recording in several files goes on; nullptr: it has ended. A proxy with --keep may delete faster than we
// read.
std::unique_ptr<CaptureReader> next_file(const std::string& path, const capture::CaptureStart& start, int& status) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const auto next = next_of_run(path, start);
    if (!next) return nullptr;
    auto opened = CaptureReader::follow(next->path);
    if (!opened) continue;  // deleted meanwhile
    if (next->missing > 0) {
      status = worse(status, kIncomplete);
      std::fprintf(stderr, "ztape show: %s between %s and %s %s gone\n", report::counted(next->missing, "file").c_str(),
                   path.c_str(), next->path.c_str(), next->missing == 1 ? "is" : "are");
    }
    return std::move(*opened);
  }
  return nullptr;
}

}  // namespace

int say_damage(const std::vector<Damage>& damage, const std::string& file) {
  int status = kDone;
  for (const auto& each : damage) {
    status = worse(status, fail("show", {each.code, each.message, file, each.offset}));
  }
  return status;
}

int show_as_they_come(const ShowOptions& show) {
  auto opened = show.follow ? CaptureReader::follow(show.file) : CaptureReader::open(show.file);
  if (!opened) return fail("show", opened.error());
  if (show.follow) end_on_signal();

  Printer printer(show);
  http2::CaptureCollector collector({.keep_bodies = show.what == What::messages,
                                     .keep_frames = show.what == What::frames,
                                     .keep_messages = show.what == What::messages,
                                     .not_only_grpc = true},
                                    &printer);
  int status = kDone;
  for (auto reader = std::move(*opened); reader;) {
    printer.set_file(reader->name());
    const auto end = show_file(show, *reader, collector, printer);
    if (end == End::nobody_reads) return kDone;
    if (end == End::by_signal) break;
    status = worse(status, say_damage(reader->damage(), reader->name()));
    reader = show.follow ? next_file(reader->name(), collector.start(), status) : nullptr;
  }
  if (interrupted) printer.silence();  // what has not ended is not told
  [[maybe_unused]] const auto rest = collector.finish();
  return interrupted ? kDone : status;
}

}  // namespace ztape::cli
