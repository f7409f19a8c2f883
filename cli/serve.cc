// ztape serve: a capture answers as if it were the indexer.
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/descriptors.h"
#include "cli/units.h"
#include "net/address.h"
#include "net/loop.h"
#include "proto/method_table.h"
#include "replay/mutate.h"
#include "replay/serve_server.h"

namespace ztape::cli {
namespace {

constexpr const char* kDefaultListen = "127.0.0.1:9068";

struct ServeArguments {
  std::string file;
  std::string listen;
  replay::ServeOptions options;
  std::vector<replay::Mutation> mutations;
};

std::unexpected<Error> refuse(const std::string& option, const std::string& value, const std::string& choices) {
  return std::unexpected(Error{ErrorCode::usage, "'" + value + "': " + choices, option});
}

Result<void> read_delay(const std::string& value, replay::ServeOptions& options) {
  if (value == "none") return {};
  if (value == "recorded") {
    options.delay = replay::DelayMode::recorded;
    return {};
  }
  const auto delay_ns = parse_duration(value);
  if (!delay_ns) return refuse("--delay", value, "none, recorded or a duration such as 40ms is needed");
  options.delay = replay::DelayMode::fixed;
  options.delay_ns = *delay_ns;
  return {};
}

Result<ServeArguments> read_arguments(const cxxopts::ParseResult& parsed) {
  ServeArguments arguments;
  if (!parsed.count("read")) {
    return std::unexpected(Error{ErrorCode::usage, "which capture? -r FILE names it", ""});
  }
  arguments.file = parsed["read"].as<std::string>();
  arguments.listen = parsed["listen"].as<std::string>();
  auto& options = arguments.options;
  options.accept_send_transaction = parsed.count("accept-send-transaction") > 0;
  const auto nodelay = parsed["nodelay"].as<std::string>();
  if (nodelay != "on" && nodelay != "off") return refuse("--nodelay", nodelay, "on or off is needed");
  options.nodelay = nodelay == "on";
  const auto writes = parsed["writes"].as<std::string>();
  if (writes == "one") {
    options.writes = replay::WriteMode::one;
  } else if (writes == "split") {
    options.writes = replay::WriteMode::split;
  } else if (writes != "recorded") {
    return refuse("--writes", writes, "recorded, one or split is needed");
  }
  if (auto delay = read_delay(parsed["delay"].as<std::string>(), options); !delay) {
    return std::unexpected(delay.error());
  }
  if (!parsed.count("mutate")) return arguments;
  for (const auto& rule : parsed["mutate"].as<std::vector<std::string>>()) {
    auto mutation = replay::parse_mutation(rule);
    if (!mutation) return std::unexpected(mutation.error());
    arguments.mutations.push_back(std::move(*mutation));
  }
  return arguments;
}

// Reads the capture and applies the rules. `lacking` counts what of it cannot be served.
Result<replay::AnswerBook> load_book(ServeArguments& arguments, uint64_t& lacking) {
  http2::CallBuilderOptions with_bodies;
  with_bodies.keep_bodies = true;
  with_bodies.keep_frames = true;
  auto capture = http2::read_capture(arguments.file, with_bodies);
  if (!capture) return std::unexpected(capture.error());
  auto loaded = replay::load_answers(std::move(*capture));
  for (const auto& sentence : loaded.incomplete) {
    spdlog::warn("{}: {}; serving what is whole", arguments.file, sentence);
  }
  if (loaded.unreadable_calls > 0) {
    spdlog::warn("{}: {} calls cannot be read and are not served", arguments.file, loaded.unreadable_calls);
  }
  if (loaded.unfinished_requests > 0) {
    spdlog::info("{}: {} calls were cancelled before their request was complete: they have no answer", arguments.file,
                 loaded.unfinished_requests);
  }
  lacking = loaded.incomplete.size() + loaded.unreadable_calls;
  if (auto applied = replay::apply_mutations(arguments.mutations, loaded.answers); !applied) {
    return std::unexpected(applied.error());
  }
  arguments.options.settings = std::move(loaded.server_settings);
  const bool timed = arguments.options.delay == replay::DelayMode::recorded;
  return replay::AnswerBook(std::move(loaded.answers), arguments.options.writes, timed);
}

Result<std::unique_ptr<replay::ServeServer>> listen(net::Loop& loop, const std::string& text,
                                                    const replay::AnswerBook& book,
                                                    const replay::ServeOptions& options) {
  const auto url = net::parse_url(text);
  if (!url) return std::unexpected(url.error());
  if (url->tls) return std::unexpected(Error{ErrorCode::address, "serve speaks plaintext only, not https", text});
  const auto addresses = net::resolve(*url, true);
  if (!addresses) return std::unexpected(addresses.error());
  Error error{ErrorCode::address, "no address to listen on", text};
  for (const auto& address : *addresses) {
    auto server = replay::ServeServer::listen(loop, address, book, options,
                                              [](const std::string& line) { spdlog::warn("{}", line); });
    if (server) return server;
    error = server.error();
  }
  return std::unexpected(error);
}

std::string counted(uint64_t count, const char* word) {
  return std::to_string(count) + ' ' + word + (count == 1 ? "" : "s");
}

void print_summary(const replay::ServeCounts& counts) {
  uint64_t calls = 0;
  for (const auto& [path, count] : counts.calls) calls += count;
  std::printf("%s, %s answered\n", counted(counts.connections, "connection").c_str(), counted(calls, "call").c_str());
  for (const auto& [path, count] : counts.calls) {
    std::printf("  %8llu  %s\n", static_cast<unsigned long long>(count), std::string(short_name(path)).c_str());
  }
  std::printf("%s, %s refused, %s\n", counted(counts.unknown_requests, "unknown request").c_str(),
              counted(counts.refused_requests, "transaction").c_str(),
              counted(counts.bad_requests, "bad request").c_str());
}

int serve(ServeArguments arguments) {
  uint64_t lacking = 0;
  const auto book = load_book(arguments, lacking);
  if (!book) return fail("serve", book.error());

  if (const auto ready = prepare_descriptors(); !ready) return fail("serve", ready.error());
  net::Loop loop;
  const auto& file = arguments.file;
  const auto server = listen(loop, arguments.listen, *book, arguments.options);
  if (!server) return fail("serve", server.error());
  std::unique_ptr<net::StopSignals> signals;
  signals = std::make_unique<net::StopSignals>(loop, [&](int) {
    (*server)->stop();
    signals.reset();
    loop.stop();
  });
  // Only now, so that whoever reads this line can also stop us cleanly.
  std::printf("listening on %s, serving %s (%s, %s)\n", (*server)->local_text().c_str(), file.c_str(),
              counted(book->answer_count(), "answer").c_str(), counted(book->method_count(), "method").c_str());
  std::fflush(stdout);
  loop.run();
  print_summary((*server)->counts());
  if (lacking == 0) return kDone;
  std::fprintf(stderr, "ztape serve: %s: incomplete: %s not served\n", file.c_str(), counted(lacking, "part").c_str());
  return kIncomplete;
}

}  // namespace

int run_serve(int argc, char** argv) {
  cxxopts::Options options(
      "ztape serve",
      "A capture answers as if it were the indexer.\n\n"
      "The n-th request of one method and body on a connection gets the n-th recorded answer; the\n"
      "last one again after that. What is not in the capture gets UNIMPLEMENTED.\n");
  options.add_options()("r,read", "the capture, - for stdin", cxxopts::value<std::string>(), "FILE")(
      "listen", "where to listen; port 0 takes a free one",
      cxxopts::value<std::string>()->default_value(kDefaultListen),
      "ADDR")("nodelay", "TCP_NODELAY on accepted connections: on or off",
              cxxopts::value<std::string>()->default_value("on"), "on|off")(
      "writes", "what goes out in one write: what arrived in one recorded read, all of an answer, or each frame",
      cxxopts::value<std::string>()->default_value("recorded"),
      "recorded|one|split")("delay", "send at once, at the recorded times after the request, or so long after it",
                            cxxopts::value<std::string>()->default_value("none"), "none|recorded|DURATION")(
      "accept-send-transaction", "answer SendTransaction as recorded; without this it is refused")(
      "mutate",
      "change answers, repeatable: field:TYPE.FIELD=VALUE, +N or -N; reverse:TYPE.FIELD; drop:METHOD, "
      "repeat:METHOD, swap:METHOD; status:METHOD=STATUS; message:METHOD=TEXT; @N at the end: only the N-th",
      cxxopts::value<std::vector<std::string>>(), "RULE");
  const auto parsed = parse(options, argc, argv,
                            "ztape serve -r sync.ztape --listen 127.0.0.1:9068 --mutate field:CompactBlock.time+1@1");
  if (!parsed) return parsed.error();
  auto arguments = read_arguments(*parsed);
  if (!arguments) return fail("serve", arguments.error());
  return serve(std::move(*arguments));
}

}  // namespace ztape::cli
