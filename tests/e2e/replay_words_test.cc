// The words of `ztape replay`, its exit statuses, its report file, and servers that are none.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "tests/e2e/replay_support.h"
#include "tests/support/fixture.h"
#include "tests/support/frames.h"
#include "tests/support/sockets.h"

namespace ztape {
namespace {

class ReplayProgram : public testing::Test {
 protected:
  test::Finished run(const std::vector<std::string>& words) {
    std::vector<std::string> command{test::ztape(), "replay"};
    command.insert(command.end(), words.begin(), words.end());
    return test::run(command);
  }

  void expect_usage(const std::vector<std::string>& words, const std::string& part) {
    const auto finished = run(words);
    EXPECT_EQ(finished.status, 2) << finished.err;
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
    EXPECT_NE(finished.err.find(part), std::string::npos) << finished.err;
  }

  test::TemporaryDirectory folder_;
};

TEST_F(ReplayProgram, BadWordsAreOneLineAndStatus2) {
  const auto capture = test::import_fixture(folder_, "zaino-zingo");
  const std::vector<std::string> good{"-r", capture, "--target", "a=http://127.0.0.1:1"};
  const auto with = [&](const std::vector<std::string>& more) {
    auto words = good;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_usage({"--target", "a=http://127.0.0.1:1"}, "which capture?");
  expect_usage({"-r", capture}, "--target NAME=URL");
  expect_usage({"-r", capture, "--target", "http://127.0.0.1:1"}, "NAME=URL is needed");
  expect_usage({"-r", capture, "--target", "a=https://127.0.0.1:1"}, "TLS is not there yet");
  expect_usage({"-r", capture, "--target", "a=http://8.8.8.8:9067"}, "--allow-remote");
  expect_usage({"-r", capture, "--target", "recording=http://127.0.0.1:1"}, "no target's name");
  expect_usage({"-r", capture, "--target", "a=127.0.0.1:no"}, "127.0.0.1:no");
  expect_usage(with({"--target", "a=http://127.0.0.1:2"}), "two targets have the name 'a'");
  expect_usage(with({"--reference", "b"}), "neither 'recording' nor a target");
  expect_usage(with({"--rules", "lightwalletd"}), "rules are not there yet");
  expect_usage(with({"--pace", "fast"}), "think, recorded or none");
  expect_usage(with({"--speed", "0"}), "--speed");
  expect_usage(with({"--rounds", "0"}), "--rounds");
  expect_usage(with({"-c", "0"}), "--clients");
  expect_usage(with({"--timeout", "5"}), "5");
  expect_usage(with({"--no-such-option"}), "no-such-option");
  expect_usage({"-r", folder_.file("none.ztape"), "--target", "a=http://127.0.0.1:1"}, "none.ztape");
  expect_usage({"-r", test::fixture_path("differences.json"), "--target", "a=http://127.0.0.1:1"}, "differences.json");
}

TEST_F(ReplayProgram, TheReportIsPrivateAndNeverOverwrittenUnasked) {
  const auto capture = test::import_fixture(folder_, "zaino-zingo");
  test::ChildProcess server(test::serve_command(capture));
  const auto file = folder_.file("mine.json");
  const std::vector<std::string> words{"-r",       capture, "--target", "a=" + test::url_of(server),
                                       "--rounds", "1",     "--warmup", "0",
                                       "--pace",   "none",  "-o",       file};
  EXPECT_EQ(run(words).status, 0);
  struct stat about{};
  ASSERT_EQ(stat(file.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  const auto before = test::read_file(file);
  expect_usage(words, "--force");
  EXPECT_EQ(test::read_file(file), before);
  auto forced = words;
  forced.push_back("--force");
  EXPECT_EQ(run(forced).status, 0);
  EXPECT_NE(test::read_file(file), before);  // its time is another
}

TEST_F(ReplayProgram, WithJsonStdoutIsOneDocument) {
  const auto capture = test::import_fixture(folder_, "zaino-zingo");
  test::ChildProcess server(test::serve_command(capture));
  const auto finished = run({"-r", capture, "--target", "a=" + test::url_of(server), "--rounds", "1", "--warmup", "0",
                             "--pace", "none", "-o", "-"});
  EXPECT_EQ(finished.status, 0);
  EXPECT_EQ(nlohmann::json::parse(finished.out)["verdict"], "agree");
}

TEST_F(ReplayProgram, WhatIsNotSentIsCountedAndNamed) {
  const auto capture = test::import_fixture(folder_, "zaino-python");
  test::ChildProcess server(test::serve_command(capture));
  const auto replayed = test::replay(
      folder_, capture, {"--target", "a=" + test::url_of(server), "--rounds", "1", "--warmup", "0", "--pace", "none"});
  EXPECT_EQ(replayed.status, 0) << replayed.err;  // what policy skips does not change the verdict
  const auto& skipped = replayed.report["skipped"];
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_EQ(skipped[0]["method"], "SendTransaction");
  EXPECT_EQ(skipped[0]["calls"], 1);
  EXPECT_NE(replayed.page.find("SendTransaction, 1 call"), std::string::npos) << replayed.page;
  EXPECT_EQ(replayed.report["coverage"]["calls_replayed"], 27);
}

// Accepts connections and answers each with the same bytes, until it is destroyed.
class CannedServer {
 public:
  explicit CannedServer(std::string bytes, bool close_after = true)
      : bytes_(std::move(bytes)), close_after_(close_after), thread_([this] { run(); }) {}
  ~CannedServer() {
    stopping_ = true;
    test::Socket::connect(address_);  // wakes the accept; its thread is there until then
    thread_.join();
  }

  [[nodiscard]] std::string target() const { return "canned=http://" + address_; }

 private:
  void run() {
    std::vector<test::Socket> open;
    while (true) {
      auto socket = listener_.accept();
      if (stopping_) return;
      try {
        if (!bytes_.empty()) {
          socket.receive_some();
          socket.send(bytes_);
        }
      } catch (const std::exception&) {
        continue;  // the client has left
      }
      if (close_after_) {
        socket.close();
      } else {
        open.push_back(std::move(socket));
      }
    }
  }

  std::string bytes_;
  bool close_after_;
  std::atomic<bool> stopping_ = false;
  test::ListeningSocket listener_;
  std::string address_ = listener_.address();
  std::thread thread_;
};

class NotAnIndexer : public ReplayProgram {
 protected:
  test::Replayed replay(const CannedServer& server, const std::vector<std::string>& more = {}) {
    const auto capture = test::import_fixture(folder_, "zaino-zingo");
    std::vector<std::string> words{"--target", server.target(), "--rounds", "1", "--warmup", "0", "--pace", "none"};
    words.insert(words.end(), more.begin(), more.end());
    return test::replay(folder_, capture, words);
  }

  static void expect_all_failed(const test::Replayed& replayed, const std::string& reason) {
    EXPECT_EQ(replayed.status, 3) << replayed.err;
    EXPECT_NE(replayed.err.find("canned: 76 calls of 76 failed"), std::string::npos) << replayed.err;
    const auto& failures = replayed.report["targets"][0]["failures"];
    EXPECT_TRUE(std::ranges::any_of(failures, [&](const auto& failure) {
      return failure["reason"].template get<std::string>().find(reason) != std::string::npos;
    })) << failures;
  }
};

TEST_F(NotAnIndexer, AnHttp1ServerDoesNotSpeakHttp2) {
  const CannedServer server("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
  expect_all_failed(replay(server), "does not speak HTTP/2");
}

TEST_F(NotAnIndexer, OneThatClosesAtOnceLosesEveryCall) {
  const CannedServer server("");
  expect_all_failed(replay(server), "not sent");
}

TEST_F(NotAnIndexer, OneThatGoesAwayIsQuoted) {
  const CannedServer server(test::settings({}) + test::goaway(0, 11, "too many pings"), false);
  expect_all_failed(replay(server), "GOAWAY (ENHANCE_YOUR_CALM: too many pings)");
}

TEST_F(NotAnIndexer, OneThatNeverAnswersFailsByTheTimeout) {
  const CannedServer server(test::settings({}), false);
  const auto replayed = replay(server, {"--timeout", "20ms"});
  expect_all_failed(replayed, "nothing came for 0.02 s");
}

TEST_F(NotAnIndexer, AnHtmlPageDiffersByItsStatus) {
  test::HeaderEncoder encoder;
  std::string answers = test::settings({});
  answers += encoder.headers(1, {{":status", "502"}, {"content-type", "text/html"}}, false);
  answers += test::data(1, "<html>bad gateway</html>", true);
  answers += test::goaway(1, 0, "");
  const CannedServer server(answers, false);
  const auto replayed = replay(server);
  EXPECT_EQ(replayed.status, 3);
  const auto& differing = replayed.report["differing_calls"];
  ASSERT_EQ(differing.size(), 1u) << differing;
  EXPECT_EQ(differing[0]["http_status"], nlohmann::json({200, 502}));
  EXPECT_EQ(differing[0]["grpc_status"], nlohmann::json({0, nullptr}));
  EXPECT_EQ(replayed.report["targets"][0]["failed"], 75);
}

}  // namespace
}  // namespace ztape
