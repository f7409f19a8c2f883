#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/account.h"
#include "cli/command.h"
#include "cli/descriptors.h"
#include "cli/live_view.h"
#include "cli/proxy_metrics.h"
#include "cli/proxy_options.h"
#include "cli/proxy_stopper.h"
#include "cli/service_manager.h"
#include "http2/call.h"
#include "net/loop.h"
#include "proto/method_table.h"
#include "proxy/live_facts.h"
#include "proxy/proxy_server.h"
#include "report/capture_page.h"
#include "report/lag_line.h"
#include "report/text.h"

namespace ztape::cli {
namespace {

std::string status_text(const proxy::CallCounts::Key& key) {
  if (key.grpc_status) return report::grpc_status_name(*key.grpc_status);
  return std::string(http2::name(key.ended_by));
}

std::string calls_table(const proxy::CallCounts& calls) {
  using report::Table;
  Table table({{"method"}, {"status"}, {"calls", Table::Align::right}});
  for (const auto& [key, outcome] : calls.rows()) {
    const auto method = key.path.empty() ? "(unreadable)" : report::escaped(short_name(key.path), 60);
    table.row({method, status_text(key), report::count(outcome.calls)});
  }
  return table.empty() ? "" : table.text();
}

std::string lost_text(const proxy::RecordingReport& report) {
  const auto& loss = report.loss;
  if (loss.nothing() && report.files.error.empty()) return "nothing";
  std::string text = report::counted(loss.chunks, "chunk") + " with " + report::counted(loss.bytes, "byte");
  if (loss.records > 0) text += ", " + report::counted(loss.records, "other record");
  if (loss.gaps > 0) text += " (" + report::counted(loss.gaps, "gap") + " in the capture)";
  if (!report.files.error.empty()) text += "; " + report.files.error;
  return text;
}

// What there is to say of the files, a line each.
std::string files_text(const proxy::FileReport& files) {
  std::string text;
  if (files.files > 1) {
    text += "recorded into " + report::counted(files.files, "file");
    if (files.deleted > 0) text += ", of which the oldest " + report::count(files.deleted) + " were deleted (--keep)";
    text += "\n";
  }
  if (files.outages > 0) {
    text += "the disk was full: " + report::counted(files.outages, "time") + " (" + files.outage + ")\n";
  }
  if (files.sync_failures > 0) {
    text += "not surely on the disk: fdatasync failed " + report::counted(files.sync_failures, "time") + " (" +
            files.sync_failure + ")\n";
  }
  if (files.unfinished > 0) text += "without an end: " + report::counted(files.unfinished, "file") + "\n";
  return text;
}

std::string summary(const proxy::ProxyServer& server, const proxy::RecordingReport& report) {
  const auto counts = server.counts();
  std::string text = report::counted(counts.connections, "connection") + ", " +
                     report::counted(report.calls.total(), "call") + ", " +
                     report::byte_count(counts.bytes[index(Direction::client_to_server)]) + " client to server, " +
                     report::byte_count(counts.bytes[index(Direction::server_to_client)]) + " server to client\n";
  if (counts.upstream_failures > 0) {
    text += "not connected upstream: " + report::counted(counts.upstream_failures, "connection") + "\n";
  }
  if (counts.handshake_failures > 0) {
    text += "no TLS handshake with the wallet: " + report::counted(counts.handshake_failures, "connection") + "\n";
  }
  if (counts.turned_away > 0) text += "turned away: " + report::counted(counts.turned_away, "connection") + "\n";
  if (counts.intake.no_destination > 0) {
    text += "closed for want of a destination: " + report::counted(counts.intake.no_destination, "connection") + "\n";
  }
  if (counts.intake.bad_proxy_headers > 0) {
    text +=
        "closed for want of a PROXY header: " + report::counted(counts.intake.bad_proxy_headers, "connection") + "\n";
  }
  if (counts.intake.descriptor_waits > 0) {
    text += "waited for file descriptors: " + report::counted(counts.intake.descriptor_waits, "time") + "\n";
  }
  if (counts.holds > 0) text += "the traffic waited for the disk: " + report::counted(counts.holds, "time") + "\n";
  text += calls_table(report.calls);
  text += report::lag_line(server.loop_lag().turns(), server.loop_lag().max_ns());
  text += files_text(report.files);
  text += "lost: " + lost_text(report) + "\n";
  return text;
}

// To a device or a pipe, and on a file system without modes, there is no mode to tell of.
std::string confidence(const std::string& path) {
  struct stat status{};
  const bool is_ours = path != "-" && stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  std::string text = "a capture links network addresses with a wallet's transactions: ";
  if (is_ours && (status.st_mode & ACCESSPERMS) == (S_IRUSR | S_IWUSR)) text += path + " has mode 0600; ";
  return text + "think before you share it";
}

Result<void> check_account(const ProxyCommand& command) {
  if (!command.account || command.recorder.rotate_bytes == 0) return {};
  const auto folder = std::filesystem::path(command.recorder.path).parent_path();
  return check_folder(folder.empty() ? "." : folder.string(), *command.account);
}

}  // namespace

int run_proxy(int argc, char** argv) {
  cxxopts::Options options("ztape proxy", "Relays a wallet's traffic to an indexer and records it.");
  add_proxy_options(options);
  const auto words = parse(options, argc, argv,
                           "ztape proxy --upstream http://127.0.0.1:8137 -w sync.ztape\n"
                           "  (then point the wallet at http://127.0.0.1:9167)");
  if (!words) return words.error();
  auto command = read_proxy_options(*words);
  if (!command) return fail("proxy", command.error());
  command->recorder.on_notice = [](const std::string& line) { spdlog::warn("{}", line); };
  command->recorder.on_problem = [](const std::string& line) { spdlog::error("{}", line); };
  command->recorder.on_new_file = [](const std::string& file) { spdlog::info("recording goes on in {}", file); };
  const bool to_stdout = command->recorder.path == "-";
  const auto tls = command->tls;
  if (auto passed = take_passed_sockets(); !passed.empty()) {
    if (const auto fits = use_passed_sockets(passed, *command); !fits) return fail("proxy", fits.error());
  }
  std::vector<std::string> upstreams;
  for (const auto& route : command->proxy.intake.routes) {
    upstreams.push_back(route.destination ? route.destination->url.text : "the original destination");
  }
  const bool transparent = command->proxy.intake.transparent;
  std::FILE* page = to_stdout ? stderr : stdout;  // the capture itself may go to stdout

  if (const auto fits = check_account(*command); !fits) return fail("proxy", fits.error());
  if (const auto ready = prepare_descriptors(); !ready) return fail("proxy", ready.error());
  net::Loop loop;
  auto server = proxy::ProxyServer::listen(loop, std::move(command->proxy),
                                           [](const std::string& line) { spdlog::warn("{}", line); });
  if (!server) return fail("proxy", server.error());
  std::unique_ptr<ProxyMetrics> metrics;
  if (!command->stats_listen.empty()) {
    auto listening = ProxyMetrics::listen(loop, command->stats_listen);
    if (!listening) return fail("proxy", listening.error());
    metrics = std::move(*listening);
  }
  // Where people look on: not where they asked for quiet, or read the capture itself.
  std::unique_ptr<Terminal> terminal;
  if (!words->count("quiet") && !to_stdout) terminal = Terminal::behind(STDERR_FILENO);
  std::optional<HeldLog> log;
  if (terminal) log.emplace(Terminal::wants_color());
  if (!terminal && !words->count("quiet") && !to_stdout) terminal = Terminal::behind(STDOUT_FILENO);
  command->recorder.tell_status = metrics || terminal;
  auto recorder = proxy::Recorder::start(std::move(command->recorder));
  if (!recorder) return fail("proxy", recorder.error());
  const auto path = (*recorder)->first_path();
  (*server)->record_to(**recorder);
  const auto look = [&server = **server, &recorder = **recorder] { return proxy::look(server, recorder); };
  if (metrics) metrics->tell(look);
  if (transparent && !(*server)->takes_tproxy()) {
    spdlog::info("REDIRECT rules work, TPROXY rules do not: those need CAP_NET_RAW");
  }
  if (command->account) {
    if (const auto given = give_file(path, *command->account); !given) return fail("proxy", given.error());
    if (const auto changed = become(*command->account); !changed) return fail("proxy", changed.error());
  }

  {
    ProxyStopper stopper(loop, **server, command->times);  // before the first line: whoever reads it may stop us
    const net::HangupSignal hangup(loop, [&tls] {
      if (tls) return tls->reload();
      spdlog::info("SIGHUP: there is no certificate to read again; the recording goes on");
    });
    const auto listening = (*server)->local_texts();
    for (std::size_t i = 0; i < upstreams.size(); ++i) {
      std::fprintf(page, "listening on %s, upstream %s, recording to %s\n", listening[i].c_str(), upstreams[i].c_str(),
                   path.c_str());
    }
    if (metrics) std::fprintf(page, "metrics on %s\n", metrics->url().c_str());
    std::fflush(page);
    tell_service_manager("READY=1");
    spdlog::info("{}", confidence(path));
    if (tls) tls->tell();
    std::optional<LiveView> view;
    if (terminal) view.emplace(loop, std::move(terminal), log ? &*log : nullptr, look);
    stopper.before_stop([&view] { view.reset(); });  // what is said from there on stands behind no table
    loop.run();
    stopper.leave_signals();
  }
  metrics.reset();
  const auto& report = (*recorder)->finish();
  std::fprintf(page, "%s", summary(**server, report).c_str());
  std::fflush(page);
  // A wallet that did not get through is in no capture.
  const bool all_reached = (*server)->counts().upstream_failures == 0;
  return report.whole() && all_reached ? kDone : kIncomplete;
}

}  // namespace ztape::cli
