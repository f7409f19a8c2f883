// `ztape serve` as a program: its words, its exit statuses, and what a grpc++ client gets from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

#include "http2/frame.h"
#include "proto/message_diff.h"
#include "tests/serve/recorded.h"
#include "tests/support/child_process.h"
#include "tests/support/frames.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape {
namespace {

using test::ChildProcess;

class ServeProgram : public testing::Test {
 protected:
  // The fixture as a capture.
  std::string capture(const std::string& fixture) {
    const auto file = folder_.file(fixture + ".ztape");
    const auto imported = test::run({test::ztape(), "import", test::fixture_path(fixture), "-w", file});
    EXPECT_EQ(imported.status, 0) << imported.err;
    return file;
  }

  static std::vector<std::string> command(const std::string& file, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{test::ztape(), "serve", "-r", file, "--listen", "127.0.0.1:0"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // Out of "listening on 127.0.0.1:4711, serving ...".
  static std::string address(ChildProcess& server) {
    const auto line = server.line();
    const std::string before = "listening on ";
    EXPECT_TRUE(line.starts_with(before)) << line;
    return line.substr(before.size(), line.find(',') - before.size());
  }

  test::TemporaryDirectory folder_;
};

std::string first_lines_of_stderr(const test::Finished& finished) {
  EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
  return finished.err;
}

TEST_F(ServeProgram, SaysWhereItListensAndWhatItServesAndSumsUpAtTheEnd) {
  const auto file = capture("zaino-zingo");
  ChildProcess server(command(file));
  EXPECT_NE(server.line().find(", serving " + file + " (76 answers, 8 methods)"), std::string::npos) << server.line();
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_NE(server.stdout_text().find("0 connections, 0 calls answered"), std::string::npos) << server.stdout_text();
}

TEST_F(ServeProgram, BadWordsAreOneLineAndStatus2) {
  const auto file = capture("lightwalletd-grpcurl");
  const std::vector<std::vector<std::string>> cases{
      {"--nodelay", "maybe"}, {"--writes", "some"},           {"--delay", "40"},
      {"--no-such-option"},   {"--mutate", "drop:GetBlok@1"}, {"--mutate", "drop:Ping"}};
  for (const auto& words : cases) {
    const auto finished = test::run(command(file, words));
    EXPECT_EQ(finished.status, 2) << words.front();
    first_lines_of_stderr(finished);
  }
}

TEST_F(ServeProgram, AMissingFileAFileThatIsNoCaptureAndAnUnusableAddressAreStatus2) {
  EXPECT_EQ(test::run(command(folder_.file("none.ztape"))).status, 2);
  const auto text = folder_.file("text");
  std::ofstream(text) << "not a capture, but long enough to be looked at as one of them\n";
  EXPECT_EQ(test::run(command(text)).status, 2);
  const auto file = capture("lightwalletd-grpcurl");
  EXPECT_EQ(test::run({test::ztape(), "serve", "-r", file, "--listen", "127.0.0.1:99999"}).status, 2);
  EXPECT_EQ(test::run({test::ztape(), "serve"}).status, 2);
}

TEST_F(ServeProgram, APortInUseIsStatus2AndNamesTheAddress) {
  const test::ListeningSocket taken;
  const auto finished =
      test::run({test::ztape(), "serve", "-r", capture("lightwalletd-grpcurl"), "--listen", taken.address()});
  EXPECT_EQ(finished.status, 2);
  EXPECT_NE(first_lines_of_stderr(finished).find(taken.address()), std::string::npos) << finished.err;
}

TEST_F(ServeProgram, ATornCaptureIsServedAsFarAsItIsWholeAndEndsWith3) {
  const auto file = capture("zaino-zingo");
  auto bytes = test::read_file(file);
  const auto torn = folder_.file("torn.ztape");
  std::ofstream(torn, std::ios::binary) << bytes.substr(0, bytes.size() * 2 / 3);
  ChildProcess server(command(torn));
  EXPECT_NE(server.line().find("serving"), std::string::npos);
  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 3);
  EXPECT_NE(server.stderr_text().find("incomplete"), std::string::npos) << server.stderr_text();
}

TEST_F(ServeProgram, GarbageAndClientsThatGoAwayDoNotStopIt) {
  ChildProcess server(command(capture("zaino-zingo")));
  const auto at = address(server);
  for (int i = 0; i < 20; ++i) {
    auto garbage = test::Socket::connect(at);
    garbage.send("GET / HTTP/1.1\r\n\r\n");
    garbage.receive_all();  // the server ends the connection
    auto reset = test::Socket::connect(at);
    reset.send(std::string(http2::kClientPreface) + test::settings({}));
    reset.receive_some();
    reset.reset();
  }
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_NE(server.stdout_text().find("40 connections"), std::string::npos) << server.stdout_text();
}

TEST_F(ServeProgram, AClientThatNeverReadsCostsBoundedMemory) {
  ChildProcess server(command(capture("zaino-zingo")));
  auto client = test::Socket::connect(address(server));
  client.set_receive_buffer(4096);
  constexpr uint32_t kHugeWindow = 0x7fff'0000;
  client.send(std::string(http2::kClientPreface) + test::settings({{4, kHugeWindow}}) +
              test::frame(http2::kWindowUpdate, 0, 0, test::u32(kHugeWindow)));
  // The largest recorded range, again and again.
  replay::Answer largest;
  for (const auto& each : replay::load_answers(test::recorded_fixture("zaino-zingo")).answers) {
    if (each.messages.size() > largest.messages.size()) largest = each;
  }
  test::HeaderEncoder encoder;
  uint32_t stream = 1;
  for (int i = 0; i < 5000; ++i, stream += 2) {
    const auto request = encoder.headers(stream, test::grpc_request(largest.path), false) +
                         test::data(stream, test::message(largest.requests.front()), true);
    if (client.send_without_waiting(request) < request.size()) break;  // the server reads no more
  }
  // It still answers others, so it has done with this one what it will.
  auto other = test::Socket::connect(address(server));
  other.send(std::string(http2::kClientPreface) + test::settings({}));
  EXPECT_FALSE(other.receive_some().empty());
  EXPECT_LT(server.resident_bytes(), 100u * 1024 * 1024);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

#ifdef ZTAPE_GRPC_CALLER

std::string in_hex(const std::string& bytes) {
  return bytes.empty() ? "-" : to_hex(bytes);
}

struct Outcome {
  std::string line;  // as grpc_caller prints it, without the status text
  std::string text;
};

std::vector<Outcome> outcomes(const std::string& out) {
  std::vector<Outcome> list;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    const auto bar = line.find('|');
    list.push_back({line.substr(0, bar), line.substr(bar + 1)});
  }
  return list;
}

class ServeToGrpc : public ServeProgram {
 protected:
  std::vector<Outcome> call(ChildProcess& server, const std::vector<replay::Answer>& calls) {
    const auto file = folder_.file("calls");
    {
      std::ofstream out(file);
      for (const auto& each : calls) {
        out << each.path;
        for (const auto& request : each.requests) out << ' ' << in_hex(request);
        out << '\n';
      }
    }
    const auto finished = test::run({ZTAPE_GRPC_CALLER, address(server), file});
    EXPECT_EQ(finished.status, 0) << finished.err;
    return outcomes(finished.out);
  }
};

TEST_F(ServeToGrpc, EveryCallOfEveryFixtureIsAnsweredAsRecorded) {
  for (const auto& name : test::fixture_names()) {
    const auto recorded = replay::load_answers(test::recorded_fixture(name)).answers;
    ChildProcess server(command(capture(name), {"--accept-send-transaction"}));
    const auto answered = call(server, recorded);
    ASSERT_EQ(answered.size(), recorded.size()) << name;
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      SCOPED_TRACE(name + " stream " + std::to_string(recorded[i].stream));
      const bool finished = recorded[i].end == replay::Answer::End::end_stream;
      constexpr const char* kCancelled = "1";
      std::string expected = finished ? *http2::find_header(recorded[i].trailers, "grpc-status") : kCancelled;
      for (const auto& message : recorded[i].messages) expected += ' ' + in_hex(message.body);
      EXPECT_EQ(answered[i].line, expected);
      const auto* text = http2::find_header(recorded[i].trailers, "grpc-message");
      if (finished) {
        EXPECT_EQ(answered[i].text, text ? http2::percent_decode(*text) : "");
      }
    }
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0);
    EXPECT_EQ(server.stderr_text(), "");
  }
}

TEST_F(ServeToGrpc, ARuleChangesExactlyTheMessageItNames) {
  const auto recorded = replay::load_answers(test::recorded_fixture("zaino-zingo")).answers;
  ChildProcess server(command(capture("zaino-zingo"), {"--mutate", "field:CompactBlock.time+1@1", "--mutate",
                                                       "status:GetLightdInfo=INTERNAL"}));
  const auto answered = call(server, recorded);
  ASSERT_EQ(answered.size(), recorded.size());
  std::size_t changed_messages = 0;
  std::size_t changed_statuses = 0;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    std::istringstream words(answered[i].line);
    std::string word;
    words >> word;
    if (word == "13") ++changed_statuses;
    for (const auto& message : recorded[i].messages) {
      words >> word;
      if (word != in_hex(message.body)) ++changed_messages;
    }
  }
  EXPECT_EQ(changed_messages, 1u);
  EXPECT_EQ(changed_statuses, 1u);
}

TEST_F(ServeToGrpc, WhatIsNotInTheCaptureIsUnimplementedAndLogged) {
  ChildProcess server(command(capture("zaino-zingo")));
  replay::Answer unknown;
  unknown.path = test::path_of("GetTreeState");
  unknown.requests = {std::string("\x08\xff\xff\x03", 4)};
  const auto answered = call(server, {unknown});
  EXPECT_EQ(answered.at(0).line, "12");
  server.wait_for_stderr("not in the capture: GetTreeState {height: 65535}; the nearest recorded one: {height: ");
  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_NE(server.stdout_text().find("1 unknown request,"), std::string::npos) << server.stdout_text();
}

TEST_F(ServeToGrpc, SendTransactionIsRefusedByDefault) {
  const auto recorded = replay::load_answers(test::recorded_fixture("zaino-zingo-send")).answers;
  std::vector<replay::Answer> sends;
  for (const auto& each : recorded) {
    if (each.path == test::path_of("SendTransaction")) sends.push_back(each);
  }
  ASSERT_FALSE(sends.empty());
  ChildProcess server(command(capture("zaino-zingo-send")));
  for (const auto& outcome : call(server, sends)) EXPECT_EQ(outcome.line, "7");
}

#endif

}  // namespace
}  // namespace ztape
