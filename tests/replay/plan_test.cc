#include "replay/plan.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/replay/recorded.h"

namespace ztape::replay {
namespace {

using test::connection_of;
using test::stream_call;
using test::unary_call;

const Step& find_step(const Session& session, uint32_t call, StepKind kind, uint32_t message = 0) {
  for (const auto& step : session.steps) {
    if (step.call == call && step.kind == kind && step.message == message) return step;
  }
  throw std::runtime_error("no such step");
}

bool has_step(const Session& session, uint32_t call, StepKind kind) {
  for (const auto& step : session.steps) {
    if (step.call == call && step.kind == kind) return true;
  }
  return false;
}

TEST(Plan, ACallDependsOnWhatHadArrivedBeforeItAndThinksSinceTheLastOfIt) {
  const auto connection = connection_of({unary_call(1, "GetLatestBlock", 100, 200), unary_call(3, "GetBlock", 150, 300),
                                         unary_call(5, "GetTreeState", 230, 400)});
  const auto session = make_session(connection, {});
  // Events: 1 headers, message, end at 200; 3's at 300; 5's at 400.
  ASSERT_EQ(session.events.size(), 9u);
  EXPECT_EQ(find_step(session, 0, StepKind::start).prefix, 0u);
  EXPECT_EQ(find_step(session, 0, StepKind::start).think_ns, 100);  // since the opening, at 0
  EXPECT_EQ(find_step(session, 1, StepKind::start).prefix, 0u);
  EXPECT_EQ(find_step(session, 2, StepKind::start).prefix, 3u);
  EXPECT_EQ(find_step(session, 2, StepKind::start).think_ns, 30);
}

TEST(Plan, AnAnswerWithinTheWalletsRoundTripHadNotReachedIt) {
  auto connection = connection_of({unary_call(1, "GetLatestBlock", 100, 200), unary_call(3, "GetBlock", 230, 300)});
  connection.downstream_rtt_ns = 40;
  EXPECT_EQ(find_step(make_session(connection, {}), 1, StepKind::start).prefix, 0u);
  connection.downstream_rtt_ns = 10;
  const auto session = make_session(connection, {});
  EXPECT_EQ(find_step(session, 1, StepKind::start).prefix, 3u);
  EXPECT_EQ(find_step(session, 1, StepKind::start).think_ns, 20);
}

TEST(Plan, StepsAreOrderedAndTheirPrefixNeverFalls) {
  for (const char* name : {"zaino-zingo", "zaino-python", "lightwalletd-grpcjs", "zebra-ghz", "zaino-okhttp"}) {
    for (const auto& connection : test::recorded_fixture(name)) {
      const auto session = make_session(connection, {});
      ASSERT_FALSE(session.steps.empty());
      for (std::size_t i = 1; i < session.steps.size(); ++i) {
        EXPECT_LE(session.steps[i - 1].prefix, session.steps[i].prefix) << name << " step " << i;
      }
    }
  }
}

TEST(Plan, AMempoolStreamHoldsUpNothing) {
  const auto connections = test::recorded_fixture("zaino-zingo");
  const auto session = make_session(connections.at(0), {});
  for (const auto& event : session.events) EXPECT_NE(session.calls[event.call].method, "GetMempoolStream");
  const auto& mempool = session.calls.at(2);
  ASSERT_EQ(mempool.method, "GetMempoolStream");
  EXPECT_TRUE(mempool.cut());
  EXPECT_TRUE(mempool.cancel_needs_headers);
  EXPECT_EQ(mempool.cancel_needs_messages, 0u);
  // The wallet cancelled it after all 75 other calls: all their events come before.
  EXPECT_EQ(find_step(session, 2, StepKind::cancel).prefix, session.events.size());
}

TEST(Plan, ADeadlineIsNoDependency) {
  const auto connections = test::recorded_fixture("zaino-python");
  const auto session = make_session(connections.at(0), {});
  const auto& mempool = session.calls.at(26);
  ASSERT_EQ(mempool.recorded->stream, 53u);
  ASSERT_TRUE(mempool.deadline_ns);
  EXPECT_NEAR(static_cast<double>(*mempool.deadline_ns), 1e9, 1e7);
  EXPECT_FALSE(has_step(session, 26, StepKind::cancel));
}

TEST(Plan, ACancelFollowsTheMessagesThatHadCome) {
  const auto connections = test::recorded_fixture("zaino-python");
  const auto session = make_session(connections.at(0), {});
  const auto& range = session.calls.at(27);
  ASSERT_EQ(range.recorded->stream, 55u);
  const auto& cancel = find_step(session, 27, StepKind::cancel);
  const auto& last = session.events.at(cancel.prefix - 1);
  EXPECT_EQ(last.call, 27u);
  EXPECT_EQ(last.kind, EventKind::message);
  EXPECT_EQ(cancel.prefix, session.events.size()) << "what crossed the cancel is no event";
}

TEST(Plan, ACancelIsNoHalfClose) {
  auto call = stream_call(1, "GetBlockRange", 10, {20, 30}, 40);
  call.ended_by = http2::EndedBy::client_reset;
  call.request_end_ns = call.end_ns;
  const auto connection = connection_of({call});
  const auto session = make_session(connection, {});
  EXPECT_FALSE(has_step(session, 0, StepKind::half_close));
  EXPECT_EQ(find_step(session, 0, StepKind::cancel).prefix, 3u);  // headers and two messages
  EXPECT_EQ(find_step(session, 0, StepKind::cancel).think_ns, 10);
}

TEST(Plan, EachMessageOfAClientStreamIsAStepOfItsOwn) {
  const auto connections = test::recorded_fixture("zaino-python");
  const auto session = make_session(connections.at(0), {});
  ASSERT_EQ(session.calls.at(19).method, "GetTaddressBalanceStream");
  for (uint32_t i = 0; i < 3; ++i) EXPECT_NO_THROW(find_step(session, 19, StepKind::message, i));
  EXPECT_TRUE(has_step(session, 19, StepKind::half_close));
}

TEST(Plan, OnlyMethodsKnownToReadAreSent) {
  auto darkside = unary_call(7, "Reset", 40, 50);
  darkside.path = "/cash.z.wallet.sdk.rpc.DarksideStreamer/Reset";
  auto other = unary_call(9, "Check", 60, 70);
  other.path = "/grpc.health.v1.Health/Check";
  auto unreadable = unary_call(11, "GetBlock", 80, 90);
  unreadable.path.clear();
  const auto connection = connection_of(
      {unary_call(1, "GetBlock", 1, 2), unary_call(3, "SendTransaction", 10, 20), darkside, other, unreadable});

  const auto strict = make_session(connection, {});
  EXPECT_FALSE(strict.calls[0].skipped());
  EXPECT_NE(strict.calls[1].skip_reason.find("--allow-send-transaction"), std::string::npos);
  EXPECT_NE(strict.calls[2].skip_reason.find("DarksideStreamer"), std::string::npos);
  EXPECT_NE(strict.calls[3].skip_reason.find("--allow-method"), std::string::npos);
  EXPECT_NE(strict.calls[4].skip_reason.find("could not be read"), std::string::npos);

  // Short names do not open the dangerous ones.
  const auto loose = make_session(connection, {.allowed_methods = {"Check", "Reset", "SendTransaction"}});
  EXPECT_TRUE(loose.calls[1].skipped());
  EXPECT_TRUE(loose.calls[2].skipped());
  EXPECT_FALSE(loose.calls[3].skipped());

  const auto open = make_session(connection, {.allowed_methods = {darkside.path}, .send_transactions = true});
  EXPECT_FALSE(open.calls[1].skipped());
  EXPECT_TRUE(open.calls[1].sends_transaction);
  EXPECT_FALSE(open.calls[2].skipped());
  EXPECT_TRUE(open.calls[4].skipped());
}

TEST(Plan, ReadsGrpcTimeouts) {
  EXPECT_EQ(parse_grpc_timeout("10S"), 10'000'000'000);
  EXPECT_EQ(parse_grpc_timeout("999m"), 999'000'000);
  EXPECT_EQ(parse_grpc_timeout("1M"), 60'000'000'000);
  EXPECT_EQ(parse_grpc_timeout("5u"), 5'000);
  EXPECT_EQ(parse_grpc_timeout("7n"), 7);
  EXPECT_EQ(parse_grpc_timeout("99999999H"), INT64_MAX);
  for (const char* bad : {"", "S", "10", "1x", "-1S", "123456789S", "1.5S", " 1S"}) {
    EXPECT_EQ(parse_grpc_timeout(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace ztape::replay
