// What `ztape proxy` says and how it ends when it is asked for something it cannot do.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/support/child_process.h"
#include "tests/support/fixture.h"
#include "tests/support/proxy_process.h"
#include "tests/support/recorded_bytes.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

void expect_usage_error(const std::vector<std::string>& words, const std::string& text) {
  std::vector<std::string> all{ztape(), "proxy"};
  all.insert(all.end(), words.begin(), words.end());
  const auto ended = run(all);
  EXPECT_EQ(ended.status, 2) << text;
  EXPECT_EQ(ended.out, "");
  EXPECT_NE(ended.err.find(text), std::string::npos) << ended.err;
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
}

TEST(ProxyUsage, WhatCannotBeDoneIsOneLineAndStatus2) {
  const TemporaryDirectory folder;
  const auto file = folder.file("a.ztape");
  expect_usage_error({}, "--upstream");
  expect_usage_error({"--upstream", "ftp://127.0.0.1:1", "-w", file}, "ftp");
  expect_usage_error({"--upstream", "http://127.0.0.1", "-w", file}, "port is missing");
  expect_usage_error({"--upstream", "https://127.0.0.1:1", "-w", file, "--cacert", "/nowhere"},
                     "--cacert: /nowhere: No such file");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--listen", "127.0.0.1:70000"}, "above 65535");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--upstream-nodelay", "yes"}, "not off or on");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--upstream-quickack", "on"}, "not off or read");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--when-disk-is-slow", "stop"}, "not gap or hold");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--queue-bytes", "64Q"}, "not a size");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--queue-bytes", "100K"}, "at least 1M");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--duration", "5"}, "not a duration");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--compression", "20"}, "none, auto or 1 to 19");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--note", "novalue"}, "not key=value");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--max-connections", "0"}, "turn everyone away");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--rotate-bytes", "1K"},
                     "--rotate-bytes: must be at least 64K");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--rotate-bytes", "1M", "--keep", "0"},
                     "--keep: must be at least 1");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--keep", "3"}, "--keep: it needs --rotate-bytes");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", "-", "--rotate-bytes", "1M"}, "stdout is one file");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--sync", "always"}, "not none or interval");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", folder.file("none/a.ztape"), "--listen", "127.0.0.1:0"},
                     "No such file or directory");
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", "/dev/full", "--force", "--listen", "127.0.0.1:0"},
                     "No space left on device");
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(ProxyUsage, APortInUseIsNamedAndNoFileIsLeftBehind) {
  const TemporaryDirectory folder;
  const ListeningSocket busy;
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", folder.file("a.ztape"), "--listen", busy.address()},
                     busy.address() + ": address already in use");
  EXPECT_FALSE(std::filesystem::exists(folder.file("a.ztape")));
}

TEST(ProxyUsage, ASecondProxyOnTheSamePortIsRefused) {
  const TemporaryDirectory folder;
  ProxyProcess first("127.0.0.1:1", folder.file("a.ztape"));
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", folder.file("b.ztape"), "--listen", first.address()},
                     "address already in use");
  EXPECT_EQ(first.stop(), 0);
}

TEST(ProxyUsage, AnExistingFileIsKeptWithoutForce) {
  const TemporaryDirectory folder;
  const auto file = folder.file("a.ztape");
  std::ofstream(file) << "precious";
  expect_usage_error({"--upstream", "127.0.0.1:1", "-w", file, "--listen", "127.0.0.1:0"}, "exists already");
  EXPECT_EQ(read_file(file), "precious");
  ProxyProcess forced("127.0.0.1:1", file, {"--force"});
  EXPECT_EQ(forced.stop(), 0);
  EXPECT_TRUE(read_traffic(file).whole);
}

TEST(ProxyUsage, SaysAtItsStartWhatACaptureReveals) {
  const TemporaryDirectory folder;
  ProxyProcess proxy("127.0.0.1:1", folder.file("a.ztape"));
  proxy.process().wait_for_stderr("links network addresses");
  proxy.process().wait_for_stderr("mode 0600");
  struct stat status{};
  ASSERT_EQ(stat(folder.file("a.ztape").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(proxy.stop(), 0);
}

TEST(ProxyUsage, DoesNotSayThatADeviceHasAMode) {
  ProxyProcess proxy("127.0.0.1:1", "/dev/null", {"--force"});
  proxy.process().wait_for_stderr("links network addresses");
  EXPECT_EQ(proxy.stop(), 0);
  EXPECT_EQ(proxy.process().stderr_text().find("mode"), std::string::npos) << proxy.process().stderr_text();
}

TEST(ProxyUsage, SettingsAndNotesAreInTheCapture) {
  const TemporaryDirectory folder;
  ProxyProcess proxy(
      "127.0.0.1:1", folder.file("a.ztape"),
      {"--note", "wallet=zingo", "--note", "why=a, b and c=d", "--upstream-quickack", "read", "--compression", "none"});
  EXPECT_EQ(proxy.stop(), 0);
  const auto start = read_traffic(folder.file("a.ztape")).start;
  EXPECT_EQ(start.notes().at("wallet"), "zingo");
  EXPECT_EQ(start.notes().at("why"), "a, b and c=d");
  EXPECT_EQ(start.settings().at("upstream-quickack"), "read");
  EXPECT_EQ(start.settings().at("downstream-quickack"), "off");
  EXPECT_EQ(start.settings().at("compression"), "none");
  EXPECT_EQ(start.source(), "proxy");
  EXPECT_GT(start.opened().realtime_unix_ns(), 1'600'000'000'000'000'000);
}

TEST(ProxyUsage, ADurationEndsItByItself) {
  const TemporaryDirectory folder;
  ProxyProcess proxy("127.0.0.1:1", folder.file("a.ztape"), {"--duration", "1ms"});
  EXPECT_EQ(proxy.process().wait(), 0);
  EXPECT_TRUE(read_traffic(folder.file("a.ztape")).whole);
}

TEST(ProxyUsage, InterruptEndsItAsTerminateDoes) {
  const TemporaryDirectory folder;
  ProxyProcess proxy("127.0.0.1:1", folder.file("a.ztape"));
  proxy.process().signal(SIGINT);
  EXPECT_EQ(proxy.process().wait(), 0);
  EXPECT_NE(proxy.process().stdout_text().find("lost: nothing\n"), std::string::npos);
}

TEST(ProxyUsage, ACaptureMayGoToStdout) {
  const TemporaryDirectory folder;
  ChildProcess proxy({ztape(), "proxy", "--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "-w", "-"});
  proxy.wait_for_stderr("listening on 127.0.0.1:");
  proxy.signal(SIGTERM);
  EXPECT_EQ(proxy.wait(), 0);
  const auto file = folder.file("piped.ztape");
  std::ofstream(file, std::ios::binary) << proxy.stdout_text();
  EXPECT_TRUE(read_traffic(file).whole);
}

}  // namespace
}  // namespace ztape::test
