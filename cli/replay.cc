// ztape replay: plays the recorded wallets against targets and says whether the answers agree, and how fast they came.
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/descriptors.h"
#include "cli/units.h"
#include "net/loop.h"
#include "replay/engine.h"
#include "replay/environment.h"
#include "report/replay_json.h"
#include "report/replay_page.h"

namespace ztape::cli {
namespace {

struct ReplayArguments {
  std::string file;
  replay::ReplayOptions options;
  replay::Policy policy;
  std::string report_file;  // "" none, "-" stdout
  bool overwrite = false;
  bool json = false;
};

std::unexpected<Error> usage(const std::string& message, const std::string& subject = "") {
  return std::unexpected(Error{ErrorCode::usage, message, subject});
}

bool is_name(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  });
}

Result<replay::Target> read_target(const std::string& text, bool allow_remote) {
  const auto equals = text.find('=');
  if (equals == std::string::npos)
    return usage("NAME=URL is needed, as zaino=http://127.0.0.1:8137", "--target " + text);
  replay::Target target;
  target.name = text.substr(0, equals);
  if (!is_name(target.name)) return usage("a name has letters, digits, '.', '-' and '_'", "--target " + text);
  if (target.name == replay::kRecording) return usage("'recording' is no target's name", "--target " + text);
  const auto url = net::parse_url(text.substr(equals + 1));
  if (!url) return usage(url.error().line(), "--target " + text);
  if (url->port == 0) return usage("port 0 cannot be connected to", "--target " + text);
  if (url->tls) return usage("TLS is not there yet: only http:// targets", "--target " + text);
  target.url = *url;
  const auto addresses = net::resolve(*url);
  if (!addresses) return std::unexpected(addresses.error());
  target.addresses = *addresses;
  for (const auto& address : target.addresses) {
    if (allow_remote || address.loopback_or_private()) continue;
    return usage(address.text() +
                     " is not a loopback or private address, and a recording hands over a wallet's addresses: "
                     "--allow-remote sends it there all the same",
                 "--target " + text);
  }
  return target;
}

Result<void> read_targets(const cxxopts::ParseResult& parsed, ReplayArguments& arguments) {
  if (!parsed.count("target")) return usage("against which server? --target NAME=URL, once or more");
  const bool allow_remote = parsed.count("allow-remote") > 0;
  auto& targets = arguments.options.targets;
  for (const auto& text : parsed["target"].as<std::vector<std::string>>()) {
    auto target = read_target(text, allow_remote);
    if (!target) return std::unexpected(target.error());
    if (std::ranges::find(targets, target->name, &replay::Target::name) != targets.end()) {
      return usage("two targets have the name '" + target->name + "'", "--target " + text);
    }
    targets.push_back(std::move(*target));
  }
  const auto reference = parsed["reference"].as<std::string>();
  if (reference == replay::kRecording) return {};
  const auto found = std::ranges::find(targets, reference, &replay::Target::name);
  if (found == targets.end()) return usage("'" + reference + "' is neither 'recording' nor a target", "--reference");
  if (targets.size() < 2) return usage("a second target is needed, to be compared with " + reference, "--reference");
  arguments.options.reference = static_cast<std::size_t>(found - targets.begin());
  return {};
}

Result<void> read_load(const cxxopts::ParseResult& parsed, replay::ReplayOptions& options) {
  constexpr uint64_t kMostClients = 100'000;
  options.clients = parsed["clients"].as<uint64_t>();
  if (options.clients == 0 || options.clients > kMostClients) return usage("1 to 100000 are possible", "--clients");
  constexpr uint64_t kMostRounds = 10'000'000;
  options.rounds = parsed["rounds"].as<uint64_t>();
  if (options.rounds == 0 || options.rounds > kMostRounds) return usage("1 to 10000000 are possible", "--rounds");
  options.warmup = parsed["warmup"].as<uint64_t>();
  if (options.warmup > kMostRounds) return usage("at most 10000000 are possible", "--warmup");
  auto& pacing = options.wallet.pacing;
  const auto pace = parsed["pace"].as<std::string>();
  if (pace == "none") {
    pacing.pace = replay::Pace::none;
  } else if (pace == "recorded") {
    pacing.pace = replay::Pace::recorded;
  } else if (pace != "think") {
    return usage("'" + pace + "': think, recorded or none is needed", "--pace");
  }
  pacing.speed = parsed["speed"].as<double>();
  if (!(pacing.speed > 0 && pacing.speed <= 1e9)) return usage("a number over 0 is needed", "--speed");
  const auto read_timeout = [&](const char* option, int64_t& ns) -> Result<void> {
    const auto duration = parse_duration(parsed[option].as<std::string>());
    if (!duration) return usage(duration.error().line(), std::string("--") + option);
    if (*duration <= 0) return usage("a duration over 0 is needed", std::string("--") + option);
    ns = *duration;
    return {};
  };
  if (auto read = read_timeout("timeout", options.wallet.call_timeout_ns); !read) return read;
  return read_timeout("connect-timeout", options.wallet.connect_timeout_ns);
}

Result<ReplayArguments> read_arguments(const cxxopts::ParseResult& parsed) {
  ReplayArguments arguments;
  if (!parsed.count("read")) return usage("which capture? -r FILE names it");
  arguments.file = parsed["read"].as<std::string>();
  if (auto read = read_targets(parsed, arguments); !read) return std::unexpected(read.error());
  if (auto read = read_load(parsed, arguments.options); !read) return std::unexpected(read.error());
  if (const auto rules = parsed["rules"].as<std::string>(); rules != "none") {
    return usage("'" + rules + "': rules are not there yet; only 'none' is possible", "--rules");
  }
  if (parsed.count("allow-method")) {
    for (const auto& method : parsed["allow-method"].as<std::vector<std::string>>()) {
      arguments.policy.allowed_methods.insert(method);
    }
  }
  if (parsed.count("allow-send-transaction")) {
    arguments.options.send_transaction_chain = parsed["allow-send-transaction"].as<std::string>();
    if (arguments.options.send_transaction_chain.empty()) {
      return usage("which chain? the targets' GetLightdInfo must name it", "--allow-send-transaction");
    }
    arguments.policy.send_transactions = true;
  }
  if (parsed.count("output")) arguments.report_file = parsed["output"].as<std::string>();
  arguments.overwrite = parsed.count("force") > 0;
  arguments.json = parsed.count("json") > 0 || arguments.report_file == "-";
  return arguments;
}

// The report's file is made before the first call is sent, so that no run is lost to a path that cannot be written.
class ReportFile {
 public:
  ReportFile() = default;
  ~ReportFile() {
    if (file_) std::fclose(file_);
  }
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;

  Result<void> open(const std::string& path, bool overwrite) {
    path_ = path;
    // Not truncated yet: an interrupted run leaves what was there.
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (overwrite ? 0 : O_EXCL), 0600);
    if (fd < 0 && errno == EEXIST) return usage("the file exists; --force overwrites it", path);
    if (fd < 0) return std::unexpected(Error{ErrorCode::io, std::strerror(errno), path});
    struct stat status{};
    regular_ = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);  // a device or a pipe keeps its mode
    if (regular_ && fchmod(fd, 0600) != 0)
      spdlog::warn("{}: its mode cannot be set to 0600: {}", path, std::strerror(errno));
    file_ = fdopen(fd, "w");
    return {};
  }

  Result<void> write(const std::string& text) {
    const bool written = (!regular_ || ftruncate(fileno(file_), 0) == 0) &&
                         std::fwrite(text.data(), 1, text.size(), file_) == text.size();
    const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
    if (!written || !closed) return std::unexpected(Error{ErrorCode::io, std::strerror(errno), path_});
    return {};
  }

  [[nodiscard]] bool is_open() const { return file_ != nullptr; }

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
  bool regular_ = false;
};

// Rewritten in place; nothing where stderr is no terminal.
class ProgressLine {
 public:
  void show(const replay::Progress& progress) {
    spdlog::debug("{} {}/{}: {}", progress.warmup ? "warm-up" : "round", progress.round, progress.rounds,
                  progress.target);
    if (!on_) return;
    std::fprintf(stderr, "\r\033[K%s %llu/%llu  %s", progress.warmup ? "warm-up" : "round",
                 static_cast<unsigned long long>(progress.round), static_cast<unsigned long long>(progress.rounds),
                 progress.target.c_str());
    std::fflush(stderr);
  }
  ~ProgressLine() {
    if (on_) std::fputs("\r\033[K", stderr);
  }

 private:
  bool on_ = isatty(STDERR_FILENO) != 0 && spdlog::should_log(spdlog::level::info);
};

// What the reader could not read makes the replay incomplete, however well the rest went.
void add_damage(const http2::RecordedCapture& capture, std::vector<std::string>& incomplete) {
  for (const auto& damage : capture.damage) {
    incomplete.push_back(Error{damage.code, damage.message, capture.file, damage.offset}.line());
  }
  uint64_t bytes = 0;
  for (const auto& gap : capture.gaps) bytes += gap.bytes();
  if (!capture.gaps.empty()) {
    incomplete.push_back("the recorder left out " + std::to_string(bytes) + " bytes in " +
                         std::to_string(capture.gaps.size()) + " gaps");
  }
}

replay::ReplayReport play(const http2::RecordedCapture& capture, const ReplayArguments& arguments) {
  const auto plan = replay::make_plan(capture, arguments.policy);
  const auto started = net::wall_now();
  const auto start = net::monotonic_now();
  net::Loop loop;
  replay::ReplayReport report;
  {
    ProgressLine line;
    replay::Engine engine(loop, plan, arguments.options, [&](const replay::Progress& p) { line.show(p); });
    net::StopSignals signals(loop, [&](int count) {
      if (count > 1) std::_Exit(kIncomplete);
      engine.stop();
    });
    engine.run();
    report = engine.report();
  }
  report.environment = replay::this_machine();
  report.environment.capture = capture.file;
  report.environment.version = ZTAPE_VERSION;
  report.environment.started = started;
  report.environment.duration_ns = net::monotonic_now() - start;
  return report;
}

int replay_capture(const ReplayArguments& arguments) {
  http2::CallBuilderOptions with_bodies;
  with_bodies.keep_bodies = true;
  const auto capture = http2::read_capture(arguments.file, with_bodies);
  if (!capture) return fail("replay", capture.error());
  ReportFile file;
  if (!arguments.report_file.empty() && arguments.report_file != "-") {
    if (auto opened = file.open(arguments.report_file, arguments.overwrite); !opened) {
      return fail("replay", opened.error());
    }
  }
  if (const auto ready = prepare_descriptors(); !ready) return fail("replay", ready.error());
  auto report = play(*capture, arguments);
  add_damage(*capture, report.incomplete);
  if (!report.incomplete.empty()) report.verdict = replay::Verdict::incomplete;

  const auto json = report::replay_json(report) + "\n";
  std::fputs(arguments.json ? json.c_str() : report::replay_page(report).c_str(), stdout);
  for (const auto& reason : report.incomplete) std::fprintf(stderr, "ztape replay: %s\n", reason.c_str());
  if (file.is_open()) {
    if (auto written = file.write(json); !written) return fail("replay", written.error());
  }
  switch (report.verdict) {
    case replay::Verdict::agree: return kDone;
    case replay::Verdict::differ: return kDifferent;
    case replay::Verdict::incomplete: return kIncomplete;
  }
  return kIncomplete;
}

}  // namespace

int run_replay(int argc, char** argv) {
  cxxopts::Options options(
      "ztape replay",
      "Plays the recorded wallets against one or more servers, in the recorded order, and compares their\n"
      "answers with the recorded ones. Exit status: 0 they agree, 1 they differ, 3 incomplete.\n");
  auto add = options.add_options();
  add("r,read", "the capture, - for stdin", cxxopts::value<std::string>(), "FILE");
  add("target", "a server, repeatable", cxxopts::value<std::vector<std::string>>(), "NAME=URL");
  add("c,clients", "wallets at a time, each on a connection of its own; wallet i plays session i mod their number",
      cxxopts::value<uint64_t>()->default_value("1"), "N");
  add("rounds", "how often every target plays them", cxxopts::value<uint64_t>()->default_value("10"), "N");
  add("warmup", "rounds before that, which do not count", cxxopts::value<uint64_t>()->default_value("1"), "N");
  add("pace", "the wallet's think time after each answer, its recorded times, or neither",
      cxxopts::value<std::string>()->default_value("think"), "think|recorded|none");
  add("speed", "divides think time and recorded times", cxxopts::value<double>()->default_value("1"), "X");
  add("connect-timeout", "for a connection", cxxopts::value<std::string>()->default_value("5s"), "DURATION");
  add("timeout", "a call that brings nothing for so long has failed",
      cxxopts::value<std::string>()->default_value("60s"), "DURATION");
  add("reference", "whose answers are right: the recording's, or a target's",
      cxxopts::value<std::string>()->default_value("recording"), "recording|NAME");
  add("rules", "what may differ; only none is possible yet", cxxopts::value<std::string>()->default_value("none"),
      "none");
  add("allow-method", "send this method too: its short name, or its full path; repeatable",
      cxxopts::value<std::vector<std::string>>(), "METHOD");
  add("allow-send-transaction", "send transactions to targets on this chain, each once", cxxopts::value<std::string>(),
      "CHAIN");
  add("allow-remote", "targets may be outside loopback and private networks");
  add("o,output", "write the report as JSON, mode 0600; - is stdout", cxxopts::value<std::string>(), "FILE");
  add("force", "overwrite an existing report");
  add("json", "print the report as JSON instead of a page");
  const auto parsed = parse(options, argc, argv,
                            "ztape replay -r sync.ztape --target zaino=http://127.0.0.1:8137 "
                            "--target ztreamer=http://127.0.0.1:9067 -o report.json");
  if (!parsed) return parsed.error();
  const auto arguments = read_arguments(*parsed);
  if (!arguments) return fail("replay", arguments.error());
  return replay_capture(*arguments);
}

}  // namespace ztape::cli
