#include "cli/show_options.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "cli/command.h"
#include "cli/units.h"

namespace ztape::cli {
namespace {

using What = ShowOptions::What;

constexpr const char* kExamples =
    "ztape show -r sync.ztape                       what is in it\n"
    "  ztape show -r sync.ztape --calls --method GetTransaction --slower-than 40ms\n"
    "  ztape show -r sync.ztape --by user-agent --by method     who calls what, how fast\n"
    "  ztape show -r sync.ztape --messages --connection 2 --since 10s --until 20s\n"
    "  ztape show -r sync.ztape --follow --json       each call as it ends, while it records";

void describe(cxxopts::Options& options) {
  const auto numbers = [] { return cxxopts::value<std::vector<uint64_t>>(); };
  const auto words = [] { return cxxopts::value<std::vector<std::string>>(); };
  options.add_options()("r,read", "the capture, - for stdin", cxxopts::value<std::string>(), "FILE")(
      "json", "JSON: one document; with --calls, --frames and --messages an object a line");
  options.add_options("Content")("calls", "a call a line")("frames", "a frame a line")(
      "messages", "calls with their messages decoded, as they end")(
      "by", "a table of calls by method, user-agent or status; several: by all of them", words(), "WHAT")(
      "follow", "go on while the capture is being written: calls (or --frames, --messages) as they end");
  options.add_options("Filter")("method", "calls of this method: GetBlock, its full path, or a JSON-RPC method",
                                words(), "NAME")("connection", "of this connection", numbers(), "N")(
      "session", "of this session: a recorded connection", numbers(), "N")(
      "stream", "of this stream; over HTTP/1.1 the N-th request", cxxopts::value<std::vector<uint32_t>>(), "N");
  options.add_options("Filter")("since",
                                "what started at this time or later: 10s from the capture's start, or "
                                "2026-12-01T03:12:45Z",
                                cxxopts::value<std::string>(), "TIME")("until", "what started before this time",
                                                                       cxxopts::value<std::string>(), "TIME")(
      "slower-than", "calls that took longer", cxxopts::value<std::string>(), "40ms");
}

std::size_t width_of_stdout() {
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int asked = columns ? std::atoi(columns) : 0;
  return asked > 0 ? static_cast<std::size_t>(asked) : 0;  // a pipe or a file: all there is, whatever stands in it
}

Result<report::Moment> parse_moment(const std::string& text) {
  if (text.find(':') != std::string::npos) {
    const auto unix_ns = parse_time(text);
    if (!unix_ns) return std::unexpected(unix_ns.error());
    return report::Moment{.absolute = true, .ns = *unix_ns};
  }
  const auto ns = parse_duration(text);
  if (!ns) {
    return std::unexpected(
        Error{ErrorCode::usage,
              "'" + text + "' is no time: write 10s (from the capture's start) or 2026-12-01T03:12:45Z", ""});
  }
  return report::Moment{.absolute = false, .ns = *ns};
}

// "method", or several with commas.
Result<void> add_keys(const std::string& words, std::vector<report::GroupKey>& keys) {
  for (std::size_t at = 0; at <= words.size();) {
    const auto comma = std::min(words.find(',', at), words.size());
    const auto word = words.substr(at, comma - at);
    at = comma + 1;
    report::GroupKey key{};
    if (word == "method") {
      key = report::GroupKey::method;
    } else if (word == "user-agent" || word == "user_agent") {
      key = report::GroupKey::user_agent;
    } else if (word == "status") {
      key = report::GroupKey::status;
    } else {
      return std::unexpected(
          Error{ErrorCode::usage, "--by: '" + word + "' is not known: method, user-agent or status", ""});
    }
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  }
  return {};
}

Result<void> fill_filter(const cxxopts::ParseResult& parsed, report::CallFilter& filter) {
  if (parsed.count("connection")) filter.connections = parsed["connection"].as<std::vector<uint64_t>>();
  if (parsed.count("session")) {
    const auto sessions = parsed["session"].as<std::vector<uint64_t>>();
    filter.connections.insert(filter.connections.end(), sessions.begin(), sessions.end());
  }
  if (parsed.count("stream")) filter.streams = parsed["stream"].as<std::vector<uint32_t>>();
  if (parsed.count("method")) filter.methods = parsed["method"].as<std::vector<std::string>>();
  for (const auto& [name, into] : {std::pair{"since", &filter.since}, std::pair{"until", &filter.until}}) {
    if (!parsed.count(name)) continue;
    const auto moment = parse_moment(parsed[name].as<std::string>());
    if (!moment)
      return std::unexpected(Error{ErrorCode::usage, std::string("--") + name + ": " + moment.error().message, ""});
    *into = *moment;
  }
  if (filter.since && filter.until && filter.since->absolute == filter.until->absolute &&
      filter.until->ns <= filter.since->ns) {
    return std::unexpected(Error{ErrorCode::usage, "--until is not after --since: nothing is between them", ""});
  }
  if (parsed.count("slower-than")) {
    const auto ns = parse_duration(parsed["slower-than"].as<std::string>());
    if (!ns) return std::unexpected(Error{ErrorCode::usage, "--slower-than: " + ns.error().message, ""});
    filter.slower_than_ns = *ns;
  }
  return {};
}

// What does not go together, or "".
std::string contradiction(const ShowOptions& show) {
  if (!show.follow) return "";
  if (show.what == What::groups) return "--by needs the whole capture: it does not go with --follow";
  if (show.what != What::frames) return "";
  if (!show.filter.methods.empty())
    return "--method picks calls, which are known after their frames: not with --frames --follow";
  if (show.filter.slower_than_ns) return "--slower-than is known when a call has ended: not with --frames --follow";
  return "";
}

}  // namespace

std::expected<ShowOptions, int> parse_show_options(int argc, char** argv) {
  cxxopts::Options options("ztape show",
                           "Shows what is in a capture: a summary, or its calls, frames or messages. Filters may be "
                           "repeated: any of these.");
  describe(options);
  const auto parsed = parse(options, argc, argv, kExamples);
  if (!parsed) return std::unexpected(parsed.error());
  const auto usage = [](const std::string& why) { return std::unexpected(fail("show", {ErrorCode::usage, why, ""})); };
  if (!parsed->count("read")) return usage("which capture? -r FILE names it");

  ShowOptions show;
  show.file = (*parsed)["read"].as<std::string>();
  show.json = parsed->count("json") > 0;
  show.follow = parsed->count("follow") > 0;
  show.width = width_of_stdout();
  std::vector<std::string> asked;
  for (const auto& [name, what] : {std::pair{"calls", What::calls}, std::pair{"frames", What::frames},
                                   std::pair{"messages", What::messages}, std::pair{"by", What::groups}}) {
    if (!parsed->count(name)) continue;
    asked.emplace_back(std::string("--") + name);
    show.what = what;
  }
  // Messages stand below their calls anyway.
  if (asked == std::vector<std::string>{"--calls", "--messages"}) asked.erase(asked.begin());
  if (asked.size() > 1) return usage(asked[0] + " and " + asked[1] + " do not go together");
  if (show.follow && show.what == What::summary) show.what = What::calls;
  if (parsed->count("by")) {
    for (const auto& words : (*parsed)["by"].as<std::vector<std::string>>()) {
      if (const auto added = add_keys(words, show.by); !added) return usage(added.error().message);
    }
  }
  if (const auto filled = fill_filter(*parsed, show.filter); !filled) return usage(filled.error().message);
  if (const auto why = contradiction(show); !why.empty()) return usage(why);
  return show;
}

}  // namespace ztape::cli
