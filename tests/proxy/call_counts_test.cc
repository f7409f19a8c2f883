#include "proxy/call_counts.h"

#include <gtest/gtest.h>

#include "http2/connection_reader.h"
#include "tests/support/frames.h"

namespace ztape::proxy {
namespace {

constexpr int64_t kMs = 1'000'000;

http2::Call call(const std::string& path, int64_t duration_ns, int status = 0) {
  http2::Call made;
  made.path = path;
  made.start_ns = 5 * kMs;
  made.end_ns = made.start_ns + duration_ns;
  made.grpc_status = status;
  made.ended_by = http2::EndedBy::trailers;
  return made;
}

TEST(CallCounts, AMethodHasItsLatenciesAndItsErrors) {
  CallCounts counts;
  for (int i = 1; i <= 100; ++i) counts.add(call("/s/A", i * kMs));
  counts.add(call("/s/A", 40 * kMs, 5));
  counts.add(call("/s/B", kMs));
  EXPECT_EQ(counts.total(), 102u);
  const auto methods = counts.methods();
  ASSERT_EQ(methods.size(), 2u);
  EXPECT_EQ(methods[0].path, "/s/A");
  EXPECT_EQ(methods[0].calls, 101u);
  EXPECT_EQ(methods[0].errors, 1u);
  EXPECT_NEAR(static_cast<double>(*methods[0].p50_ns), 50e6, 50e6 / 32 + 1e6);
  EXPECT_NEAR(static_cast<double>(*methods[0].p95_ns), 95e6, 95e6 / 32 + 1e6);
  EXPECT_EQ(methods[0].max_ns, 100 * kMs);
  EXPECT_EQ(methods[1].p95_ns, std::nullopt);  // of one call there is none
}

TEST(CallCounts, ADurationOnABoundIsInTheBucketBelowIt) {
  CallCounts counts;
  for (const auto bound : kDurationBoundsNs) {
    counts.add(call("/s/A", bound));
    counts.add(call("/s/A", bound + 1));
  }
  const auto& outcome = counts.rows().begin()->second;
  EXPECT_EQ(outcome.timed_calls(), 2 * kDurationBoundsNs.size());
  EXPECT_EQ(outcome.durations.front(), 1u);
  EXPECT_EQ(outcome.durations.back(), 1u);
  for (std::size_t i = 1; i + 1 < outcome.durations.size(); ++i) EXPECT_EQ(outcome.durations[i], 2u) << i;
}

TEST(CallCounts, WhoEndedACallDecidesWhetherItIsAnError) {
  using http2::EndedBy;
  CallCounts counts;
  for (const auto how : {EndedBy::client_reset, EndedBy::client_close, EndedBy::server_reset, EndedBy::server_close,
                         EndedBy::goaway, EndedBy::still_open}) {
    auto ended = call("/s/A", kMs);
    ended.grpc_status.reset();
    ended.ended_by = how;
    counts.add(ended);
  }
  auto page = call("/index", kMs);  // not gRPC
  page.grpc_status.reset();
  page.http_status = 502;
  counts.add(page);
  auto untold = call("/s/Z", kMs);  // gRPC says how a call ended; this answer does not
  untold.content = http2::Content::grpc;
  untold.grpc_status.reset();
  untold.http_status = 200;
  counts.add(untold);
  const auto methods = counts.methods();
  EXPECT_EQ(methods[1].cancelled, 2u);
  EXPECT_EQ(methods[1].errors, 3u);
  EXPECT_EQ(methods[0].errors, 1u);
  EXPECT_EQ(methods[2].errors, 1u);
}

TEST(CallCounts, StaysBoundedWhateverAPeerInvents) {
  CallCounts counts;
  for (int i = 0; i < 3000; ++i) {
    auto invented = call("/s/" + std::to_string(i), kMs, i);
    counts.on_begun(invented);
    counts.on_over(invented);
    counts.add(invented);
  }
  for (int i = 0; i < 10'000; ++i) counts.add(call("/s/1", kMs, 20 + i));
  counts.add(call("/s/" + std::string(kLongestPath, 'x'), kMs));
  counts.add(call("/s/\x1b[2J", kMs));
  EXPECT_EQ(counts.methods().size(), kMostMethods + 1);
  EXPECT_LE(counts.rows().size(), kMostOutcomes + 20);
  uint64_t calls = 0;
  for (const auto& [key, outcome] : counts.rows()) calls += outcome.calls;
  EXPECT_EQ(calls, counts.total());
  for (const auto& method : counts.methods()) {
    EXPECT_EQ(method.in_flight, 0u);
    if (method.path == kOtherMethods) {
      EXPECT_EQ(method.calls, 3000 - kMostMethods + 2);
    }
  }
}

// A builder over real frames tells what is under way.
class InFlight : public testing::Test {
 protected:
  InFlight() { builder_.set_watcher(&counts_); }
  void client(const std::string& bytes) { read(Direction::client_to_server, bytes); }
  void server(const std::string& bytes) { read(Direction::server_to_client, bytes); }
  void read(Direction direction, const std::string& bytes) {
    reader_.read(direction, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, now_ += kMs);
  }
  [[nodiscard]] uint64_t in_flight() const {
    uint64_t sum = 0;
    for (const auto& method : counts_.methods()) sum += method.in_flight;
    return sum;
  }
  [[nodiscard]] MethodFigures figures() const { return counts_.methods().at(0); }

  int64_t now_ = 0;
  CallCounts counts_;
  http2::CallBuilder builder_{1, {.keep_headers = false}, [this](http2::Call&& call) { counts_.add(call); }};
  http2::ConnectionReader reader_{builder_};
  test::HeaderEncoder request_, response_;
  const std::string preface_ = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + test::settings({});
};

TEST_F(InFlight, ACallIsUnderWayFromItsHeadersToItsTrailers) {
  client(preface_ + request_.headers(1, test::grpc_request("/s/A"), false));
  EXPECT_EQ(in_flight(), 1u);
  client(test::data(1, test::message("ask"), true) + request_.headers(3, test::grpc_request("/s/A"), true));
  EXPECT_EQ(in_flight(), 2u);
  server(test::settings({}) + response_.headers(1, test::grpc_response(), false));
  server(response_.headers(1, test::grpc_trailers(0), true));
  EXPECT_EQ(in_flight(), 1u);
  client(test::rst_stream(3, 8));
  EXPECT_EQ(in_flight(), 0u);
  EXPECT_EQ(figures().calls, 1u);  // the reset one lingers
  builder_.settle(now_ + 1);
  EXPECT_EQ(figures().calls, 2u);
  EXPECT_EQ(figures().cancelled, 1u);
  EXPECT_EQ(figures().errors, 0u);
}

TEST_F(InFlight, WhatAGapHidesIsCountedAsUnseenAndNotAsALatency) {
  client(preface_ + request_.headers(1, test::grpc_request("/s/A"), true));
  server(test::settings({}) + response_.headers(1, test::grpc_response(), false));
  reader_.gap(Direction::server_to_client, "test");
  EXPECT_EQ(in_flight(), 0u);
  client(request_.headers(3, test::grpc_request("/s/A"), true));
  EXPECT_EQ(in_flight(), 0u);  // its end could not be seen either
  builder_.close(http2::EndedBy::client_close, now_ + 1);
  EXPECT_EQ(figures().calls, 2u);
  EXPECT_EQ(figures().unseen, 2u);
  EXPECT_EQ(figures().cancelled, 0u);
  EXPECT_EQ(figures().max_ns, 0);
  EXPECT_EQ(counts_.rows().begin()->second.timed_calls(), 0u);
}

}  // namespace
}  // namespace ztape::proxy
