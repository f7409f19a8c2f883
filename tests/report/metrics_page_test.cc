// The metrics page by a strict reader of Prometheus' text format.
#include "report/metrics_page.h"

#include <gtest/gtest.h>

#include "tests/support/metrics.h"

namespace ztape::report {
namespace {

using test::Metrics;
using test::Sample;

proxy::CallCounts::Key key(const std::string& path, std::optional<int> status, http2::EndedBy ended_by) {
  return {.path = path, .grpc_status = status, .ended_by = ended_by};
}

class MetricsPage : public testing::Test {
 protected:
  Metrics page() {
    facts_.recorder.of_thread = std::make_shared<const proxy::RecorderSnapshot>(snapshot_);
    return test::read_metrics(metrics_page(facts_, {.version = "0.1.0", .started = {1'800'000'000'500'000'000}}));
  }
  void outcome(const proxy::CallCounts::Key& of, std::vector<int64_t> durations_ns) {
    auto& made = snapshot_.outcomes[of];
    made.calls += durations_ns.size();
    for (const auto ns : durations_ns) {
      std::size_t bucket = 0;
      while (bucket < proxy::kDurationBoundsNs.size() && ns > proxy::kDurationBoundsNs[bucket]) ++bucket;
      ++made.durations[bucket];
      made.duration_sum_ns += ns;
    }
  }
  proxy::LiveFacts facts_;
  proxy::RecorderSnapshot snapshot_;
};

TEST_F(MetricsPage, CountsAreWhatTheProxyCounted) {
  facts_.open_connections = 3;
  facts_.counts.connections = 7;
  facts_.counts.turned_away = 2;
  facts_.counts.bytes[0] = 9'007'199'254'740'991;  // 2^53 - 1: whole in a double
  facts_.recorder.queue_bytes = 5;
  facts_.recorder.queue_limit_bytes = 16;
  facts_.recorder.loss = {.chunks = 1, .bytes = 2, .records = 3, .gaps = 4};
  snapshot_.file_bytes = 1234;
  const auto metrics = page();
  EXPECT_EQ(metrics.value("ztape_connections_open"), 3);
  EXPECT_EQ(metrics.value("ztape_connections_total"), 7);
  EXPECT_EQ(metrics.value("ztape_connections_failed_total", {{"reason", "max_connections"}}), 2);
  EXPECT_EQ(metrics.value("ztape_relayed_bytes_total", {{"direction", "client_to_server"}}), 9'007'199'254'740'991.0);
  EXPECT_EQ(metrics.value("ztape_recorder_queue_bytes"), 5);
  EXPECT_EQ(metrics.value("ztape_recorder_queue_limit_bytes"), 16);
  EXPECT_EQ(metrics.value("ztape_recorder_lost_chunks_total"), 1);
  EXPECT_EQ(metrics.value("ztape_recorder_lost_bytes_total"), 2);
  EXPECT_EQ(metrics.value("ztape_recorder_lost_records_total"), 3);
  EXPECT_EQ(metrics.value("ztape_recorder_gaps_total"), 4);
  EXPECT_EQ(metrics.value("ztape_recorder_failed"), 0);
  EXPECT_EQ(metrics.value("ztape_capture_written_bytes_total"), 1234);
  EXPECT_EQ(metrics.value("ztape_build_info", {{"version", "0.1.0"}}), 1);
  EXPECT_EQ(metrics.value("process_start_time_seconds"), 1'800'000'000.5);
}

TEST_F(MetricsPage, DurationsAreAHistogramPerMethodAndStatus) {
  using http2::EndedBy;
  outcome(key("/s/A", 0, EndedBy::trailers), {90'000, 100'000, 44'000'000});
  outcome(key("/s/A", 5, EndedBy::trailers), {2'000'000});
  outcome(key("/s/A", std::nullopt, EndedBy::client_reset), {70'000'000'000});
  outcome(key("/s/A", std::nullopt, EndedBy::server_reset), {1});
  const auto metrics = page();
  const test::Labels ok{{"method", "/s/A"}, {"grpc_status", "OK"}};
  const auto bucket = [&](test::Labels labels, const std::string& le) {
    labels["le"] = le;
    return metrics.value("ztape_call_duration_seconds_bucket", labels);
  };
  EXPECT_EQ(metrics.value("ztape_call_duration_seconds_count", ok), 3);
  EXPECT_NEAR(metrics.value("ztape_call_duration_seconds_sum", ok), 0.04419, 1e-12);
  EXPECT_EQ(bucket(ok, "0.0001"), 2);
  EXPECT_EQ(bucket(ok, "0.035"), 2);
  EXPECT_EQ(bucket(ok, "0.05"), 3);
  EXPECT_EQ(bucket(ok, "+Inf"), 3);
  const test::Labels none{{"method", "/s/A"}, {"grpc_status", "none"}};
  EXPECT_EQ(bucket(none, "60"), 1);
  EXPECT_EQ(bucket(none, "+Inf"), 2);  // two ways to end, one histogram
  EXPECT_EQ(
      metrics.value("ztape_calls_total", {{"method", "/s/A"}, {"grpc_status", "none"}, {"ended_by", "client_reset"}}),
      1);
  EXPECT_EQ(
      metrics.value("ztape_calls_total", {{"method", "/s/A"}, {"grpc_status", "NOT_FOUND"}, {"ended_by", "trailers"}}),
      1);
}

TEST_F(MetricsPage, WhateverPeersCallTheirMethodsItIsReadable) {
  using http2::EndedBy;
  outcome(key("", 0, EndedBy::trailers), {1});
  outcome(key("/quo\"te", 0, EndedBy::trailers), {1});
  outcome(key("/back\\slash", 77, EndedBy::trailers), {1});
  outcome(key(R"(/a{b="c"} 1)", 0, EndedBy::trailers), {1});
  const auto metrics = page();
  const auto calls = [&](const std::string& method, const std::string& status) {
    return metrics.value("ztape_calls_total", {{"method", method}, {"grpc_status", status}, {"ended_by", "trailers"}});
  };
  EXPECT_EQ(calls("(unreadable)", "OK"), 1);
  EXPECT_EQ(calls("/quo\"te", "OK"), 1);
  EXPECT_EQ(calls("/back\\slash", "status 77"), 1);
  EXPECT_EQ(calls(R"(/a{b="c"} 1)", "OK"), 1);
}

TEST_F(MetricsPage, LoopLagIsAHistogram) {
  for (const int64_t ns : {5'000, 80'000, 80'000, 400'000'000}) facts_.loop_turns.add(ns);
  facts_.loop_lag_max_ns = 400'000'000;
  const auto metrics = page();
  EXPECT_EQ(metrics.value("ztape_loop_lag_seconds_count"), 4);
  EXPECT_EQ(metrics.value("ztape_loop_lag_seconds_bucket", {{"le", "1e-05"}}), 1);
  EXPECT_EQ(metrics.value("ztape_loop_lag_seconds_bucket", {{"le", "0.0001"}}), 3);
  EXPECT_EQ(metrics.value("ztape_loop_lag_seconds_bucket", {{"le", "0.25"}}), 3);
  EXPECT_EQ(metrics.value("ztape_loop_lag_max_seconds"), .4);
}

}  // namespace
}  // namespace ztape::report
