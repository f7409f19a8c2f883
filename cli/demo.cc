// ztape demo: "Zaino and Ztreamer, one wallet". Runs the commands a user would run, on loopback, and shows what they
// found.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cli/child.h"
#include "cli/command.h"
#include "cli/demo_captures.h"
#include "http2/recorded_connection.h"
#include "report/demo_page.h"

namespace ztape::cli {
namespace {

namespace fs = std::filesystem;

// Removed with everything in it at the end.
class Workplace {
 public:
  Workplace() {
    std::error_code none;
    parent_ = fs::temp_directory_path(none).string();
    if (parent_.empty()) parent_ = "TMPDIR";  // it names no folder
    std::string pattern = parent_ + "/ztape-demo-XXXXXX";
    if (::mkdtemp(pattern.data())) path_ = pattern;
  }
  ~Workplace() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  [[nodiscard]] bool made() const { return !path_.empty(); }
  [[nodiscard]] const std::string& parent() const { return parent_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string parent_;
  std::string path_;
};

volatile sig_atomic_t interrupted = 0;  // how often
volatile sig_atomic_t running = 0;      // the process that is waited for

// A terminal sends Ctrl-C to the children too; who stops us with kill(1) sends it to us alone.
void on_stop(int) {
  interrupted = interrupted + 1;
  if (running > 0) ::kill(running, interrupted > 1 ? SIGKILL : SIGINT);
}

Error demo_error(std::string message) {
  return {ErrorCode::torn, std::move(message), ""};
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return std::unexpected(Error{ErrorCode::io, "cannot be written", path});
  return {};
}

// A command that listens: its process, and the URL on the first line of its stdout.
struct Listening {
  Child process;
  std::string url;
};

Result<Listening> start_listening(const std::vector<std::string>& arguments) {
  auto child = Child::start(arguments);
  if (!child) return std::unexpected(child.error());
  constexpr std::string_view kFirstWords = "listening on ";
  const auto line = child->line();
  if (!line.starts_with(kFirstWords))
    return std::unexpected(demo_error("'" + child->command_line() + "' did not start"));
  auto url = "http://" + line.substr(kFirstWords.size(), line.find(',') - kFirstWords.size());
  return Listening{std::move(*child), std::move(url)};
}

// Runs a command to its end. Differences (1) are what the demo shows, so they are no failure.
Result<void> run_to_end(const std::vector<std::string>& arguments) {
  auto child = Child::start(arguments);
  if (!child) return std::unexpected(child.error());
  running = child->pid();
  if (interrupted) ::kill(child->pid(), SIGINT);  // it came before `running` was set
  const int status = child->wait();
  running = 0;
  if (interrupted) return std::unexpected(demo_error("interrupted"));
  if (status != kDone && status != kDifferent) {
    return std::unexpected(demo_error("'" + child->command_line() + "' ended with status " + std::to_string(status)));
  }
  return {};
}

void step(const char* text) {
  std::fprintf(stderr, "%s\n", text);
}

Result<report::DemoResults> run_demo(const Workplace& workplace, const std::string& rounds) {
  const auto zaino_file = workplace.file("zaino.ztape");
  const auto ztreamer_file = workplace.file("ztreamer.ztape");
  const auto recording = workplace.file("sync.ztape");
  const auto cured = workplace.file("cured.ztape");
  const auto report_file = workplace.file("report.json");
  if (auto written = write_file(zaino_file, zaino_capture()); !written) return std::unexpected(written.error());
  if (auto written = write_file(ztreamer_file, ztreamer_capture()); !written) return std::unexpected(written.error());

  step("1/4  serving what Zaino (without TCP_NODELAY, as the real one) and Ztreamer (with) answered a real wallet ...");
  auto zaino = start_listening(
      {"serve", "-r", zaino_file, "--listen", "127.0.0.1:0", "--nodelay", "off", "--writes", "recorded", "-q"});
  if (!zaino) return std::unexpected(zaino.error());
  auto ztreamer = start_listening(
      {"serve", "-r", ztreamer_file, "--listen", "127.0.0.1:0", "--nodelay", "on", "--writes", "recorded", "-q"});
  if (!ztreamer) return std::unexpected(ztreamer.error());

  step("2/4  the wallet's session through `ztape proxy` to Zaino, recorded anew (about 4 s) ...");
  auto proxy = start_listening({"proxy", "--upstream", zaino->url, "--listen", "127.0.0.1:0", "-w", recording, "-q"});
  if (!proxy) return std::unexpected(proxy.error());
  auto wallet = run_to_end({"replay", "-r", zaino_file, "--target", "wallet=" + proxy->url, "--rounds", "1", "--warmup",
                            "0", "--pace", "think", "--rules", "none", "-q"});
  if (!wallet) return std::unexpected(wallet.error());
  if (proxy->process.interrupt() != kDone) return std::unexpected(demo_error("the proxy lost something"));

  step(
      "3/4  that recording replayed against both, and against Zaino behind `ztape proxy --upstream-quickack read` "
      "(about 20 s) ...");
  auto cure = start_listening(
      {"proxy", "--upstream", zaino->url, "--listen", "127.0.0.1:0", "-w", cured, "--upstream-quickack", "read", "-q"});
  if (!cure) return std::unexpected(cure.error());
  auto replayed = run_to_end({"replay",
                              "-r",
                              recording,
                              "--target",
                              "zaino=" + zaino->url,
                              "--target",
                              "ztreamer=" + ztreamer->url,
                              "--target",
                              "cured=" + cure->url,
                              "--rounds",
                              rounds,
                              "--warmup",
                              "0",
                              "--pace",
                              "think",
                              "--rules",
                              "none",
                              "-o",
                              report_file,
                              "-q"});
  if (!replayed) return std::unexpected(replayed.error());
  if (cure->process.interrupt() != kDone) return std::unexpected(demo_error("the second proxy lost something"));
  ztreamer->process.interrupt();
  zaino->process.interrupt();

  step("4/4  reading the results ...\n");
  report::DemoResults results;
  auto read = http2::read_capture(recording, {.keep_messages = false});
  if (!read) return std::unexpected(read.error());
  results.recording = std::move(*read);
  read = http2::read_capture(cured, {.keep_messages = false});
  if (!read) return std::unexpected(read.error());
  results.cured = std::move(*read);
  std::ifstream report(report_file, std::ios::binary);
  results.replay_report.assign(std::istreambuf_iterator<char>(report), {});
  return results;
}

}  // namespace

int run_demo(int argc, char** argv) {
  cxxopts::Options options(
      "ztape demo",
      "Zaino and Ztreamer, one wallet: records, replays and compares on this machine, with nothing to set up.");
  options.add_options()("rounds", "how often each indexer gets the wallet's session",
                        cxxopts::value<uint64_t>()->default_value("3"), "N");
  const auto parsed = parse(options, argc, argv, "ztape demo");
  if (!parsed) return parsed.error();
  const auto rounds = (*parsed)["rounds"].as<uint64_t>();
  constexpr uint64_t kMostRounds = 1000;
  if (rounds == 0 || rounds > kMostRounds) {
    return fail("demo", {ErrorCode::usage, "1 to " + std::to_string(kMostRounds) + " are possible", "--rounds"});
  }
  struct sigaction action{};
  action.sa_handler = on_stop;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  const Workplace workplace;
  if (!workplace.made()) return fail("demo", {ErrorCode::io, "no temporary folder can be made", workplace.parent()});
  const auto results = run_demo(workplace, std::to_string(rounds));
  if (!results) return fail("demo", results.error());
  const auto page = report::demo_page(*results);
  if (!page) return fail("demo", page.error());
  std::fputs(page->c_str(), stdout);
  return kDone;
}

}  // namespace ztape::cli
