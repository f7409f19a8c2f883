// The relay as a pure machine: events in, actions out.
#include "proxy/relay.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/fixture.h"

namespace ztape::proxy {
namespace {

using net::Slice;

std::string text_of(const Slice& slice) {
  return {slice.span().begin(), slice.span().end()};
}

// Actions as words, so that a test reads like a protocol of what happened.
struct Describe {
  std::string operator()(const action::StartReading& a) const { return "start " + std::string(name(a.from)); }
  std::string operator()(const action::PauseReading& a) const { return "pause " + std::string(name(a.from)); }
  std::string operator()(const action::Send& a) const {
    return "send " + std::string(name(a.to)) + " " + text_of(a.bytes);
  }
  std::string operator()(const action::HalfClose& a) const {
    return "half-close " + std::string(name(a.to)) + (a.truncated ? " truncated" : "");
  }
  std::string operator()(const action::CloseAfterDrain& a) const { return "close " + std::string(name(a.side)); }
  std::string operator()(const action::ResetAfterDrain& a) const { return "reset " + std::string(name(a.side)); }
  std::string operator()(const action::Drop& a) const { return "drop " + std::string(name(a.side)); }
  std::string operator()(const action::RecordChunk& a) const {
    return "chunk " + std::string(ztape::name(a.direction)) + "@" + std::to_string(a.offset) + " " + text_of(a.bytes) +
           " t" + std::to_string(a.time.ns);
  }
  std::string operator()(const action::RecordEnd& a) const {
    const char* ends[] = {"", "fin", "reset", "failed"};
    return std::string("end ") + ends[static_cast<int>(a.end)] + " " + std::string(ztape::name(a.direction)) + "@" +
           std::to_string(a.offset) + (a.error.empty() ? "" : " " + a.error);
  }
  std::string operator()(const action::RecordClose& a) const {
    return "over first=" + (a.first_side ? std::string(name(*a.first_side)) : "none") +
           (a.error.empty() ? "" : " error=" + a.error);
  }
};

class RelayTest : public testing::Test {
 protected:
  std::vector<std::string> on(Event event) {
    std::vector<Action> actions;
    relay_.handle(std::move(event), actions);
    std::vector<std::string> words;
    for (const auto& action : actions) words.push_back(std::visit(Describe(), action));
    return words;
  }
  std::vector<std::string> bytes(Side from, std::string_view text) {
    return on(event::Bytes{from, Slice::copy_of(text), {++now_}});
  }
  void connect() { on(event::Connected{{++now_}}); }

  using Words = std::vector<std::string>;
  Relay relay_;
  int64_t now_ = 0;
};

TEST_F(RelayTest, ReadsNothingBeforeUpstreamIsConnected) {
  EXPECT_EQ(on(event::Drained{Side::upstream}), Words{});
  EXPECT_EQ(on(event::Connected{{1}}), (Words{"start downstream", "start upstream"}));
}

TEST_F(RelayTest, OneReadIsOneWriteAndOneChunkWithItsOffsetAndTime) {
  connect();
  EXPECT_EQ(bytes(Side::downstream, "abc"), (Words{"send upstream abc", "chunk client_to_server@0 abc t2"}));
  EXPECT_EQ(bytes(Side::downstream, "de"), (Words{"send upstream de", "chunk client_to_server@3 de t3"}));
  EXPECT_EQ(bytes(Side::upstream, "x"), (Words{"send downstream x", "chunk server_to_client@0 x t4"}));
  EXPECT_EQ(relay_.bytes(Direction::client_to_server), 5u);
  EXPECT_EQ(relay_.bytes(Direction::server_to_client), 1u);
}

TEST_F(RelayTest, AnEndIsPassedOnAsAHalfCloseAndTheOtherDirectionGoesOn) {
  connect();
  EXPECT_EQ(on(event::Eof{Side::downstream, {9}}),
            (Words{"pause downstream", "half-close upstream", "end fin client_to_server@0"}));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(bytes(Side::upstream, "more").front(), "send downstream more");
  EXPECT_FALSE(relay_.finished());
  EXPECT_EQ(on(event::Eof{Side::upstream, {9}}),
            (Words{"pause upstream", "half-close downstream", "end fin server_to_client@400", "over first=downstream",
                   "close downstream", "close upstream"}));
  EXPECT_TRUE(relay_.finished());
}

TEST_F(RelayTest, AServerMayEndFirst) {
  connect();
  on(event::Eof{Side::upstream, {1}});
  EXPECT_EQ(bytes(Side::downstream, "still").front(), "send upstream still");
  const auto words = on(event::Eof{Side::downstream, {2}});
  EXPECT_EQ(words[3], "over first=upstream");
}

TEST_F(RelayTest, AResetIsPassedOnAfterWhatWasQueued) {
  connect();
  bytes(Side::upstream, "last");
  EXPECT_EQ(on(event::Failed{Side::upstream, "ECONNRESET", {5}}),
            (Words{"end reset server_to_client@4", "over first=upstream error=upstream: connection reset",
                   "drop upstream", "reset downstream"}));
}

TEST_F(RelayTest, AFailureThatIsNoResetKeepsItsName) {
  connect();
  EXPECT_EQ(on(event::Failed{Side::downstream, "ETIMEDOUT", {5}}),
            (Words{"end failed client_to_server@0 ETIMEDOUT", "over first=downstream error=downstream: ETIMEDOUT",
                   "drop downstream", "reset upstream"}));
}

TEST_F(RelayTest, AResetAfterAnEndIsRecordedAsASecondEnd) {
  connect();
  on(event::Eof{Side::downstream, {1}});
  EXPECT_EQ(on(event::Failed{Side::downstream, "EPIPE", {5}}),
            (Words{"end reset client_to_server@0", "over first=downstream error=downstream: connection reset",
                   "drop downstream", "reset upstream"}));
}

TEST_F(RelayTest, ARefusedUpstreamResetsTheWallet) {
  EXPECT_EQ(on(event::OpenFailed{Side::upstream, "127.0.0.1:1: connection refused", {3}}),
            (Words{"over first=upstream error=upstream 127.0.0.1:1: connection refused", "reset downstream",
                   "close upstream"}));
  EXPECT_TRUE(relay_.finished());
}

TEST_F(RelayTest, AWalletWhoseHandshakeFailedGetsWhatIsQueuedForIt) {
  EXPECT_EQ(on(event::OpenFailed{Side::downstream, "127.0.0.1:5: TLS: no handshake", {3}}),
            (Words{"over first=downstream error=downstream 127.0.0.1:5: TLS: no handshake", "close downstream",
                   "close upstream"}));
  EXPECT_TRUE(relay_.finished());
}

TEST_F(RelayTest, AnEndWithoutCloseNotifyIsPassedOnAsOneAndNoted) {
  connect();
  EXPECT_EQ(on(event::Eof{Side::upstream, {1}, true}),
            (Words{"pause upstream", "half-close downstream truncated", "end fin server_to_client@0 no close_notify"}));
}

TEST_F(RelayTest, AFullQueueStopsTheReaderThatFeedsItUntilItHasDrained) {
  connect();
  EXPECT_EQ(on(event::Queued{Side::downstream, kHighWaterBytes}), Words{});
  EXPECT_EQ(on(event::Queued{Side::downstream, kHighWaterBytes + 1}), Words{"pause upstream"});
  EXPECT_EQ(on(event::Queued{Side::downstream, kHighWaterBytes + 2}), Words{});
  EXPECT_EQ(bytes(Side::downstream, "goes on").front(), "send upstream goes on");
  EXPECT_EQ(on(event::Drained{Side::upstream}), Words{});
  EXPECT_EQ(on(event::Drained{Side::downstream}), Words{"start upstream"});
  EXPECT_EQ(on(event::Drained{Side::downstream}), Words{});
  EXPECT_EQ(relay_.pauses(Side::upstream), 1u);
  EXPECT_EQ(relay_.pauses(Side::downstream), 0u);
}

TEST_F(RelayTest, AReaderStartsAgainOnlyWhenNothingHoldsIt) {
  connect();
  on(event::Queued{Side::upstream, kHighWaterBytes + 1});
  EXPECT_EQ(on(event::RecorderFull{}), Words{"pause upstream"});
  EXPECT_EQ(on(event::Drained{Side::upstream}), Words{});
  EXPECT_EQ(on(event::RecorderRoom{}), (Words{"start downstream", "start upstream"}));
}

TEST_F(RelayTest, ASideThatEndedIsNeverReadAgain) {
  connect();
  on(event::Queued{Side::upstream, kHighWaterBytes + 1});
  on(event::Eof{Side::downstream, {1}});
  EXPECT_EQ(on(event::Drained{Side::upstream}), Words{});
  on(event::RecorderFull{});
  EXPECT_EQ(on(event::RecorderRoom{}), Words{"start upstream"});
}

TEST_F(RelayTest, AFullRecorderHoldsAConnectionThatIsNotConnectedYet) {
  EXPECT_EQ(on(event::RecorderFull{}), Words{});
  EXPECT_EQ(on(event::Connected{{1}}), Words{});
  EXPECT_EQ(on(event::RecorderRoom{}), (Words{"start downstream", "start upstream"}));
}

TEST_F(RelayTest, AStopClosesBothSidesAfterWhatIsQueued) {
  connect();
  bytes(Side::downstream, "abc");
  EXPECT_EQ(on(event::Stop{{4}}), (Words{"over first=none", "close downstream", "close upstream"}));
}

TEST_F(RelayTest, NothingHappensAfterTheEnd) {
  connect();
  on(event::Stop{{4}});
  EXPECT_EQ(bytes(Side::upstream, "late"), Words{});
  EXPECT_EQ(on(event::Eof{Side::upstream, {5}}), Words{});
  EXPECT_EQ(on(event::Failed{Side::downstream, "ECONNRESET", {5}}), Words{});
  EXPECT_EQ(on(event::Stop{{6}}), Words{});
}

// A whole wallet session, cut anywhere: what is sent and what is recorded are the bytes that came, in their order, and
// the offsets fit without a hole.
TEST(RelaySession, AWalletsBytesAreSentAndRecordedAsTheyCameWhereverTheyAreCut) {
  const auto connection = test::load_fixture("zaino-zingo").front();
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::minstd_rand random(seed);
    Relay relay;
    std::vector<Action> actions;
    std::string sent[2], recorded[2];
    std::size_t at[2] = {0, 0};
    int64_t now = 0;
    const auto handle = [&](Event event) {
      actions.clear();
      relay.handle(std::move(event), actions);
      for (const auto& action : actions) {
        if (const auto* send = std::get_if<action::Send>(&action)) {
          sent[send->to == Side::upstream ? 0 : 1] += text_of(send->bytes);
        }
        if (const auto* chunk = std::get_if<action::RecordChunk>(&action)) {
          auto& all = recorded[ztape::index(chunk->direction)];
          ASSERT_EQ(chunk->offset, all.size());
          ASSERT_EQ(chunk->time.ns, now);
          all += text_of(chunk->bytes);
        }
      }
    };
    handle(event::Connected{{now}});
    for (const auto& row : connection.chunks) {
      const Side from = row.direction == Direction::client_to_server ? Side::downstream : Side::upstream;
      if (row.eof) {
        handle(event::Eof{from, {++now}});
        continue;
      }
      for (std::size_t left = row.length; left > 0;) {
        const auto size = std::min<std::size_t>(left, 1 + random() % 5000);
        auto& offset = at[ztape::index(row.direction)];
        const std::string_view all = connection.bytes[ztape::index(row.direction)];
        ++now;
        handle(event::Bytes{from, Slice::copy_of(all.substr(offset, size)), {now}});
        offset += size;
        left -= size;
      }
    }
    EXPECT_TRUE(relay.finished());
    for (const auto direction : kDirections) {
      EXPECT_TRUE(sent[ztape::index(direction)] == connection.bytes[ztape::index(direction)]);
      EXPECT_TRUE(recorded[ztape::index(direction)] == connection.bytes[ztape::index(direction)]);
    }
  }
}

// Whatever events come in whatever order: no side is started while something holds it, nothing follows the end.
TEST(RelaySession, AnyOrderOfEventsKeepsTheRules) {
  for (uint32_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::minstd_rand random(seed);
    Relay relay;
    std::vector<Action> actions;
    bool reading[2] = {false, false};
    bool connected = false;
    bool eof[2] = {false, false};
    int closes = 0;
    for (int i = 0; i < 60; ++i) {
      const Side side = random() % 2 ? Side::upstream : Side::downstream;
      const bool was_finished = relay.finished();
      actions.clear();
      switch (random() % 10) {
        case 0:
          if (!connected) relay.handle(event::Connected{{i}}, actions);
          connected = true;
          break;
        case 1:
          if (connected && !eof[index(side)] && random() % 4 == 0) {
            eof[index(side)] = true;
            relay.handle(event::Eof{side, {i}}, actions);
          }
          break;
        case 2:
          if (connected && random() % 8 == 0) relay.handle(event::Failed{side, "ECONNRESET", {i}}, actions);
          break;
        case 3: relay.handle(event::Queued{side, random() % (2 * kHighWaterBytes)}, actions); break;
        case 4: relay.handle(event::Drained{side}, actions); break;
        case 5: relay.handle(event::RecorderFull{}, actions); break;
        case 6: relay.handle(event::RecorderRoom{}, actions); break;
        default:
          if (reading[index(side)]) relay.handle(event::Bytes{side, Slice::copy_of("b"), {i}}, actions);
      }
      if (was_finished) {
        ASSERT_TRUE(actions.empty());
      }
      for (const auto& action : actions) {
        if (const auto* start = std::get_if<action::StartReading>(&action)) {
          ASSERT_TRUE(connected && !eof[index(start->from)] && !reading[index(start->from)]);
          reading[index(start->from)] = true;
        }
        if (const auto* pause = std::get_if<action::PauseReading>(&action)) {
          ASSERT_TRUE(reading[index(pause->from)]);
          reading[index(pause->from)] = false;
        }
        if (std::holds_alternative<action::RecordClose>(action)) ++closes;
      }
    }
    ASSERT_EQ(closes, relay.finished() ? 1 : 0);
  }
}

}  // namespace
}  // namespace ztape::proxy
