// The metrics of a run agree with what `ztape show` says of its capture.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "report/capture_page.h"
#include "tests/support/fixture.h"
#include "tests/support/fixture_recording.h"
#include "tests/support/metrics.h"
#include "tests/support/proxy_process.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

constexpr const char* kGet = "GET /metrics HTTP/1.1\r\nHost: ztape\r\nAccept: text/plain;version=0.0.4\r\n\r\n";

// "127.0.0.1:9168", out of the proxy's second line.
std::string metrics_address(ProxyProcess& proxy) {
  const auto line = proxy.process().line(1);
  const std::string begin = "metrics on http://";
  const std::string end = "/metrics";
  EXPECT_TRUE(line.starts_with(begin) && line.ends_with(end)) << line;
  return line.substr(begin.size(), line.size() - begin.size() - end.size());
}

Metrics scrape(const std::string& address) {
  auto socket = Socket::connect(address);
  socket.send(kGet);
  const auto answer = socket.receive_all();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  return read_metrics(answer.substr(answer.find("\r\n\r\n") + 4));
}

// Scrapes until all of that is counted.
Metrics scrape_until(const std::string& address, const std::string& name, double value) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    auto metrics = scrape(address);
    const double sum = metrics.sum(name);
    if (sum == value) return metrics;
    if (sum > value || std::chrono::steady_clock::now() > until) {
      throw std::runtime_error(name + " is " + std::to_string(sum) + ", not " + std::to_string(value));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

class ProxyMetrics : public testing::TestWithParam<std::string> {};

TEST_P(ProxyMetrics, AgreeWithTheCapture) {
  const TemporaryDirectory folder;
  const auto capture = folder.file("a.ztape");
  ListeningSocket listener;
  ProxyProcess proxy(listener.address(), capture, {"--stats-listen", "127.0.0.1:0"});
  const auto address = metrics_address(proxy);
  send_fixture(GetParam(), proxy, listener);
  const auto connections = load_fixture(GetParam());
  double calls = 0, bytes[2] = {0, 0};
  for (const auto& connection : connections) {
    calls += static_cast<double>(connection.calls.size());
    for (const auto direction : kDirections) {
      bytes[index(direction)] += static_cast<double>(connection.bytes[index(direction)].size());
    }
  }
  const auto metrics = scrape_until(address, "ztape_calls_total", calls);
  EXPECT_EQ(metrics.sum("ztape_calls_in_flight"), 0);
  EXPECT_EQ(metrics.sum("ztape_calls_unseen_total"), 0);
  EXPECT_EQ(metrics.value("ztape_connections_total"), static_cast<double>(connections.size()));
  EXPECT_EQ(metrics.sum("ztape_connections_failed_total"), 0);
  for (const auto direction : kDirections) {
    EXPECT_EQ(metrics.value("ztape_relayed_bytes_total", {{"direction", std::string(name(direction))}}),
              bytes[index(direction)]);
  }
  EXPECT_EQ(metrics.value("ztape_recorder_lost_bytes_total"), 0);
  EXPECT_GT(metrics.value("ztape_loop_lag_seconds_count"), 0);
  EXPECT_EQ(proxy.stop(), 0);

  const auto shown = run({ztape(), "show", "-r", capture, "--calls", "--json"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  std::map<Labels, double> counts;
  std::map<Labels, std::vector<double>> durations;
  std::istringstream lines(shown.out);
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    const auto& status = row["grpc_status"];
    Labels labels{{"method", row["method"]},
                  {"grpc_status", status.is_null() ? "none" : report::grpc_status_name(status.get<int>())}};
    if (!row["start_ns"].is_null() && !row["end_ns"].is_null()) {
      durations[labels].push_back((row["end_ns"].get<double>() - row["start_ns"].get<double>()) / 1e9);
    }
    labels["ended_by"] = row["ended_by"];
    ++counts[labels];
  }
  EXPECT_FALSE(counts.empty());
  for (const auto& [labels, count] : counts) EXPECT_EQ(metrics.value("ztape_calls_total", labels), count);
  for (const auto& [labels, of] : durations) {
    const std::string family = "ztape_call_duration_seconds";
    EXPECT_EQ(metrics.value(family + "_count", labels), static_cast<double>(of.size()));
    double sum = 0;
    for (const double seconds : of) sum += seconds;
    EXPECT_NEAR(metrics.value(family + "_sum", labels), sum, 1e-9 * static_cast<double>(of.size()));
    for (const auto& sample : metrics.samples) {
      auto its = sample.labels;
      if (sample.name != family + "_bucket" || its.erase("le") == 0 || its != labels) continue;
      const auto& le = sample.labels.at("le");
      const double bound = le == "+Inf" ? INFINITY : std::stod(le);
      const auto below = std::ranges::count_if(of, [&](double seconds) { return seconds <= bound + 1e-10; });
      EXPECT_EQ(sample.value, static_cast<double>(below)) << labels.at("method") << " le " << le;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProxyMetrics, testing::ValuesIn(fixture_names()), [](const auto& row) {
  std::string text = row.param;
  std::ranges::replace(text, '-', '_');
  return text;
});

TEST(ProxyMetricsPort, WhateverComesToItTheTrafficGoesOn) {
  const TemporaryDirectory folder;
  ListeningSocket listener;
  ProxyProcess proxy(listener.address(), folder.file("a.ztape"), {"--stats-listen", "127.0.0.1:0"});
  const auto address = metrics_address(proxy);
  std::vector<Socket> visitors;
  for (int i = 0; i < 60; ++i) {
    visitors.push_back(Socket::connect(address));
    if (i % 3 == 0) visitors.back().send("\x16\x03\x01garbage\r\n\r\n");
    if (i % 3 == 1) visitors.back().send(kGet);  // and does not read
    if (i % 7 == 0) visitors.back().reset();
  }
  auto client = Socket::connect(proxy.address());
  auto server = listener.accept();
  const std::string bytes(1'000'000, 'x');
  std::thread sender([&] { client.send(bytes); });
  EXPECT_EQ(server.receive(bytes.size()), bytes);
  sender.join();
  visitors.clear();
  EXPECT_EQ(scrape_until(address, "ztape_relayed_bytes_total", 1e6).value("ztape_connections_open"), 1);
  client.close();
  server.close();
  // A visitor that is there does not keep the proxy from its end.
  auto waiting = Socket::connect(address);
  EXPECT_EQ(proxy.stop(), 0);
}

TEST(ProxyMetricsPort, APortThatIsTakenIsOneLine) {
  const TemporaryDirectory folder;
  ListeningSocket taken;
  const auto refused = run({ztape(), "proxy", "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "-w",
                            folder.file("a.ztape"), "--stats-listen", taken.address()});
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err, "ztape proxy: " + taken.address() + ": address already in use\n");
  const auto tls = run({ztape(), "proxy", "--upstream", "http://127.0.0.1:1", "--stats-listen", "https://127.0.0.1:0"});
  EXPECT_EQ(tls.status, 2);
  EXPECT_NE(tls.err.find("--stats-listen: 'https://127.0.0.1:0'"), std::string::npos) << tls.err;
}

}  // namespace
}  // namespace ztape::test
