// Silence inside calls, on the recorded sessions whose cost is known and on gaps made by hand.
#include "diagnose/silent_gaps.h"

#include <gtest/gtest.h>

#include "tests/support/calls.h"
#include "tests/support/fixture.h"

namespace ztape::test {
namespace {

constexpr int64_t kMs = 1'000'000;

http2::RecordedConnection connection_of(const std::string& fixture) {
  const auto recorded = load_fixture(fixture).front();
  http2::RecordedConnection connection;
  const auto pieces = pieces_of(recorded);
  connection.calls = read_calls(pieces);
  for (const auto& piece : pieces) {
    connection.reads.push_back({piece.time_ns, piece.direction, static_cast<uint32_t>(piece.bytes.size())});
  }
  return connection;
}

TEST(SilentGaps, SumUpToWhatTheFloorCostTheWalletOnZaino) {
  const auto gaps = diagnose::silent_gaps(connection_of("zaino-zingo"));
  EXPECT_EQ(gaps.size(), 56U);
  EXPECT_EQ(diagnose::total_ns(gaps), 2'414'357'151);  // of a session of 4.02 s
}

TEST(SilentGaps, AreNotThereOnTheServerThatSetsNodelay) {
  EXPECT_TRUE(diagnose::silent_gaps(connection_of("ztreamer-zingo")).empty());
  EXPECT_TRUE(diagnose::silent_gaps(connection_of("ztreamer-python")).empty());
}

// A call of 200 ms on stream 1, and reads at the given milliseconds.
http2::RecordedConnection with_reads(const std::string& path, const std::vector<int64_t>& at_ms) {
  http2::RecordedConnection connection;
  http2::Call call;
  call.stream = 1;
  call.path = path;
  call.start_ns = 0;
  call.end_ns = 200 * kMs;
  connection.calls.push_back(call);
  for (const int64_t ms : at_ms) connection.reads.push_back({ms * kMs, Direction::server_to_client, 10});
  return connection;
}

TEST(SilentGaps, CountOnlyWhatIsAsLongAsTheTimer) {
  const auto gaps = diagnose::silent_gaps(with_reads("/s/GetBlock", {0, 34, 78, 139, 200}));
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0].from_ns, 34 * kMs);
  EXPECT_EQ(gaps[0].to_ns, 78 * kMs);
}

TEST(SilentGaps, OutsideCallsAreTheWalletsOwnTime) {
  const auto gaps = diagnose::silent_gaps(with_reads("/s/GetBlock", {0, 200, 244, 288}));
  EXPECT_TRUE(gaps.empty());
}

TEST(SilentGaps, InsideAMempoolStreamAreNoHold) {
  const std::string mempool = "/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetMempoolStream";
  EXPECT_TRUE(diagnose::silent_gaps(with_reads(mempool, {0, 44, 88})).empty());
}

TEST(SilentGaps, BelongToTheYoungestCallUnderWay) {
  auto connection = with_reads("/s/GetBlock", {0, 20, 64, 200});
  http2::Call younger = connection.calls[0];
  younger.stream = 3;
  younger.start_ns = 20 * kMs;
  connection.calls.push_back(younger);
  const auto gaps = diagnose::silent_gaps(connection);
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0].call, 1U);
}

}  // namespace
}  // namespace ztape::test
