// The live table on a terminal.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "tests/support/child_process.h"
#include "tests/support/frames.h"
#include "tests/support/pty_process.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

constexpr const char* kPath = "/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetBlock";

class ProxyLive : public testing::Test {
 protected:
  std::vector<std::string> command(const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{ztape(),    "proxy",       "--upstream", "http://" + upstream_.address(),
                                 "--listen", "127.0.0.1:0", "-w",         folder_.file("a.ztape")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  static std::size_t count_lines(const Screen& screen, const std::string& beginning) {
    const auto lines = screen.lines();
    return static_cast<std::size_t>(
        std::ranges::count_if(lines, [&](const auto& line) { return line.starts_with(beginning); }));
  }

  static std::string address_of(const PtyProcess& proxy) {
    const auto text = proxy.screen().text();
    const std::string begin = "listening on ";
    const auto at = text.find(begin) + begin.size();
    return text.substr(at, text.find(',', at) - at);
  }

  TemporaryDirectory folder_;
  ListeningSocket upstream_;
};

TEST_F(ProxyLive, ACallIsInTheTableLogLinesStandAboveItAndTheSummaryTakesItsPlace) {
  PtyProcess proxy(command({"--max-connections", "1"}), 100, 20, {"TERM=xterm", "NO_COLOR=1"});
  proxy.wait_for(" waiting for the first call\n");
  auto client = Socket::connect(address_of(proxy));
  auto server = upstream_.accept();
  HeaderEncoder requests, answers;
  const auto request = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings({}) +
                       requests.headers(1, grpc_request(kPath), false) + data(1, message("ask"), true);
  client.send(request);
  ASSERT_EQ(server.receive(request.size()), request);
  proxy.wait_for("the open call", [](const Screen& screen) {
    return std::ranges::any_of(screen.lines(), [](const auto& line) {
      return line.starts_with(" GetBlock  ") && line.find(" 0      -     1 ") != std::string::npos;
    });
  });
  const auto answer = settings({}) + answers.headers(1, grpc_response(), false) + data(1, message("told"), false) +
                      answers.headers(1, grpc_trailers(5), true);
  server.send(answer);
  ASSERT_EQ(client.receive(answer.size()), answer);
  proxy.wait_for(" calls 1");
  proxy.wait_for("the failed call", [](const Screen& screen) {
    return std::ranges::any_of(screen.lines(), [](const auto& line) {
      return line.starts_with(" GetBlock  ") && line.find(" 0      1 ") != std::string::npos;
    });
  });

  auto refused = Socket::connect(address_of(proxy));
  proxy.wait_for("the table below the warning", [](const Screen& screen) {
    const auto text = screen.text();
    const auto warning = text.find("warning: more than 1 connections");
    return warning != std::string::npos && text.find("turned away 1", warning) != std::string::npos &&
           text.find("\n GetBlock ", warning) != std::string::npos;
  });
  const auto lines = proxy.screen().lines();
  const auto warning = std::ranges::find_if(lines, [](const auto& line) { return line.starts_with("warning: "); });
  const auto table = std::ranges::find_if(lines, [](const auto& line) { return line.starts_with(" up "); });
  EXPECT_LT(warning - lines.begin(), table - lines.begin());
  EXPECT_EQ(count_lines(proxy.screen(), " up "), 1u) << proxy.screen().text();
  EXPECT_EQ(count_lines(proxy.screen(), " GetBlock "), 1u) << proxy.screen().text();

  client.close();
  server.close();
  proxy.signal(SIGINT);
  EXPECT_EQ(proxy.wait(), 0);
  const auto text = proxy.screen().text();
  EXPECT_EQ(text.find(" up "), std::string::npos) << text;
  EXPECT_NE(text.find("\nlost: nothing\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nwarning: more than 1 connections"), std::string::npos) << text;
}

TEST_F(ProxyLive, TheTableFitsTheWindowAlsoWhenItChanges) {
  PtyProcess proxy(command(), 120, 20, {"TERM=xterm", "NO_COLOR=1"});
  const auto widest = [](const Screen& screen) {
    std::size_t most = 0;
    bool in_table = false;
    for (const auto& line : screen.lines()) {
      in_table = in_table || line.starts_with(" up ");
      if (in_table) most = std::max(most, line.size());
    }
    return most;
  };
  proxy.wait_for(" waiting for the first call\n");
  EXPECT_GT(widest(proxy.screen()), 50u);
  proxy.resize(40, 20);
  proxy.wait_for("a narrow table", [&](const Screen& screen) {
    return screen.text().find(" waiting for the first call\n") != std::string::npos && widest(screen) <= 40;
  });
  proxy.signal(SIGTERM);
  EXPECT_EQ(proxy.wait(), 0);
}

TEST_F(ProxyLive, SuspendedItLeavesACleanTerminalAndThenTheTableIsBack) {
  PtyProcess proxy(command(), 100, 20, {"TERM=xterm", "NO_COLOR=1"});
  for (int i = 0; i < 2; ++i) {
    proxy.wait_for(" waiting for the first call\n");
    proxy.signal(SIGTSTP);
    proxy.wait_for_stop();
    proxy.wait_for("a clean terminal", [](const Screen& screen) {
      return screen.text().find(" up ") == std::string::npos && screen.text().find(" waiting for") == std::string::npos;
    });
    proxy.signal(SIGCONT);
  }
  proxy.wait_for(" waiting for the first call\n");
  EXPECT_EQ(count_lines(proxy.screen(), " up "), 1u) << proxy.screen().text();
  proxy.signal(SIGTERM);
  EXPECT_EQ(proxy.wait(), 0);
}

TEST_F(ProxyLive, ColoursAreThereUnlessNotWanted) {
  // The screen drops styles: so the bytes of both are compared by their number.
  std::size_t bytes[2] = {0, 0};
  for (const bool plain : {false, true}) {
    std::vector<std::string> environment{"TERM=xterm"};
    if (plain) environment.emplace_back("NO_COLOR=1");
    PtyProcess proxy(command({"--force"}), 100, 20, environment);
    proxy.wait_for(" waiting for the first call\n");
    bytes[plain ? 1 : 0] = proxy.bytes_read();
    proxy.signal(SIGTERM);
    EXPECT_EQ(proxy.wait(), 0);
  }
  EXPECT_GT(bytes[0], bytes[1]);
}

TEST_F(ProxyLive, ThereIsNoneWhereItIsNotWanted) {
  const auto ended_without = [&](const std::vector<std::string>& more, const std::string& terminal) {
    PtyProcess proxy(command(more), 100, 20, {"TERM=" + terminal});
    proxy.wait_for("listening on ");
    proxy.signal(SIGTERM);
    EXPECT_EQ(proxy.wait(), 0);
    return proxy.screen().text().find("connections 0 open") == std::string::npos;
  };
  EXPECT_TRUE(ended_without({"--force", "-q"}, "xterm"));
  EXPECT_TRUE(ended_without({"--force"}, "dumb"));
}

TEST_F(ProxyLive, ATerminalThatIsStoppedHoldsNothingUp) {
  PtyProcess proxy(command(), 100, 20, {"TERM=xterm", "NO_COLOR=1"});
  proxy.wait_for(" waiting for the first call\n");
  auto client = Socket::connect(address_of(proxy));
  auto server = upstream_.accept();
  // Nobody reads the terminal: its buffer fills with redrawn tables and log lines, and the traffic goes on.
  proxy.stop_output();
  const std::string bytes(100'000, 'x');
  for (int i = 0; i < 30; ++i) {
    client.send(bytes);
    ASSERT_EQ(server.receive(bytes.size()), bytes);
  }
  client.close();
  server.close();
  proxy.start_output();
  proxy.wait_for("to indexer");
  proxy.signal(SIGTERM);
  EXPECT_EQ(proxy.wait(), 0);
}

}  // namespace
}  // namespace ztape::test
