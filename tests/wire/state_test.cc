// A reader that begins in the middle of a connection, from its ConnectionState, finds what one from the beginning does.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "http2/fan_out.h"
#include "http2/hpack_inflater.h"
#include "tests/support/calls.h"
#include "tests/support/fixture.h"
#include "tests/support/frames.h"
#include "tests/wire/fixture_test_name.h"

namespace ztape::test {
namespace {

using http2::Call;
using http2::EndedBy;

// Notes every frame with its offset and times, and what is unreadable.
class Listener final : public http2::ReaderSink {
 public:
  void on_frame(const http2::Frame& frame) override {
    frames.push_back(std::string(name(frame.direction)) + " " + std::to_string(frame.offset) + " type " +
                     std::to_string(frame.type) + " length " + std::to_string(frame.length) + " stream " +
                     std::to_string(frame.stream) + " from " + std::to_string(frame.first_byte_ns) + " to " +
                     std::to_string(frame.last_byte_ns));
  }
  void on_headers(const http2::Frame& frame, const http2::HeaderList& fields, bool /*end_stream*/,
                  bool readable) override {
    frames.push_back("headers at " + std::to_string(frame.offset) + (readable ? "" : " unreadable"));
    for (const auto& field : fields) frames.back() += " " + field.name + "=" + field.value;
  }
  void on_unreadable(const http2::Unreadable& lost) override { unreadable.push_back(lost.reason); }

  std::vector<std::string> frames;
  std::vector<std::string> unreadable;
};

// A reader with its calls and frames.
struct Side {
  Listener listener;
  std::vector<Call> calls;
  http2::CallBuilder builder{
      1, {.keep_headers = false, .keep_for_state = true}, [this](Call&& call) { calls.push_back(std::move(call)); }};
  http2::FanOut fan_out{&builder, &listener};
  http2::ConnectionReader reader{fan_out};

  void read(const Piece& piece) {
    reader.read(piece.direction, {reinterpret_cast<const uint8_t*>(piece.bytes.data()), piece.bytes.size()},
                piece.time_ns);
  }
  // As the file has it.
  [[nodiscard]] std::string state(bool continued) const {
    capture::ConnectionState state;
    reader.save(state);
    builder.save(state);
    state.set_continued(continued);
    return state.SerializeAsString();
  }
  void restore(const std::string& bytes) {
    capture::ConnectionState state;
    ASSERT_TRUE(state.ParseFromString(bytes));
    builder.restore(state);
    reader.restore(state);
    EXPECT_TRUE(reader.is_in(state));
  }
};

// The calls of all sides by stream: the last that tells of a call knows the most of it.
std::map<uint32_t, Call> together(std::vector<std::unique_ptr<Side>>& sides, int64_t end_ns) {
  std::map<uint32_t, Call> calls;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const bool last = i + 1 == sides.size();
    sides[i]->builder.close(last ? EndedBy::client_close : EndedBy::still_open, end_ns);
    for (auto& call : sides[i]->calls) calls.insert_or_assign(call.stream, std::move(call));
  }
  return calls;
}

// Reads the pieces, and goes on with a new reader wherever `cut` says so.
void expect_the_same(const FixtureConnection& connection, const std::vector<Piece>& pieces, bool with_times,
                     const std::function<bool(std::size_t piece)>& cut) {
  Side whole;
  std::vector<std::unique_ptr<Side>> sides;
  sides.push_back(std::make_unique<Side>());
  std::vector<std::string> frames;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    whole.read(pieces[i]);
    if (i > 0 && cut(i)) {
      const auto state = sides.back()->state(true);
      sides.push_back(std::make_unique<Side>());
      sides.back()->restore(state);
      ASSERT_EQ(sides.back()->state(true), state) << "what is restored is saved as it was";
    }
    sides.back()->read(pieces[i]);
  }
  for (const auto& side : sides) {
    frames.insert(frames.end(), side->listener.frames.begin(), side->listener.frames.end());
    ASSERT_TRUE(side->listener.unreadable.empty()) << side->listener.unreadable.front();
  }
  ASSERT_EQ(frames, whole.listener.frames);
  const auto calls = together(sides, pieces.empty() ? 0 : pieces.back().time_ns);
  ASSERT_EQ(calls.size(), connection.calls.size());
  std::size_t i = 0;
  for (const auto& [stream, call] : calls) {
    ASSERT_EQ(summary_of(call, with_times), expected_summary(connection.calls[i++], with_times));
    ASSERT_EQ(call.unreadable_reason, "");
  }
}

class StateOfFixture : public testing::TestWithParam<std::string> {};

TEST_P(StateOfFixture, ANewReaderAtEveryPieceFindsTheSameCallsAndFrames) {
  for (const auto& connection : load_fixture(GetParam())) {
    SCOPED_TRACE("connection " + std::to_string(connection.number));
    const auto pieces = pieces_of(connection);
    const std::size_t every = 1 + pieces.size() / 400;
    expect_the_same(connection, pieces, true, [&](std::size_t piece) { return piece % every == 0; });
  }
}

TEST_P(StateOfFixture, ANewReaderAfterWhateverByteFindsTheSameCallsAndFrames) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const auto& connection : load_fixture(GetParam())) {
    SCOPED_TRACE("connection " + std::to_string(connection.number));
    std::vector<Piece> pieces;
    for (const auto& piece : pieces_of(connection)) {
      for (std::size_t at = 0; at < piece.bytes.size();) {
        const std::size_t left = piece.bytes.size() - at;
        const std::size_t count =
            std::min<std::size_t>(left, std::uniform_int_distribution<>(1, left > 300 ? 200 : 9)(random));
        pieces.push_back({piece.direction, piece.bytes.substr(at, count), piece.time_ns});
        at += count;
      }
    }
    const std::size_t cuts = 300;
    const double share = std::min(1.0, static_cast<double>(cuts) / static_cast<double>(pieces.size() + 1));
    std::bernoulli_distribution cut(share);
    expect_the_same(connection, pieces, false, [&](std::size_t) { return cut(random); });
  }
}

INSTANTIATE_TEST_SUITE_P(All, StateOfFixture, testing::ValuesIn(fixture_names()), fixture_test_name);

Piece from(Direction direction, std::string bytes, int64_t time_ns = 1) {
  return {direction, std::move(bytes), time_ns};
}

// The bytes of one direction after another, a new reader after every byte.
std::vector<std::string> frames_cut_everywhere(const std::vector<Piece>& pieces) {
  std::vector<std::string> frames;
  auto side = std::make_unique<Side>();
  for (const auto& piece : pieces) {
    for (std::size_t i = 0; i < piece.bytes.size(); ++i) {
      side->read({piece.direction, piece.bytes.substr(i, 1), piece.time_ns});
      const auto state = side->state(true);
      frames.insert(frames.end(), side->listener.frames.begin(), side->listener.frames.end());
      side = std::make_unique<Side>();
      side->restore(state);
      EXPECT_EQ(side->state(true), state);
    }
  }
  return frames;
}

std::vector<std::string> frames_of(const std::vector<Piece>& pieces) {
  Side side;
  for (const auto& piece : pieces) {
    for (std::size_t i = 0; i < piece.bytes.size(); ++i) {
      side.read({piece.direction, piece.bytes.substr(i, 1), piece.time_ns});
    }
  }
  return side.listener.frames;
}

TEST(ConnectionState, HoldsPaddingContinuationsAndTablesThatChangeTheirSize) {
  HeaderEncoder client;
  HeaderEncoder server;
  const auto request = client.block(grpc_request("/a/B"));
  std::vector<Piece> pieces;
  pieces.push_back(from(Direction::client_to_server, std::string(http2::kClientPreface) + settings({{1, 200}})));
  pieces.push_back(from(Direction::server_to_client, settings({{1, 8192}, {5, 20000}}) + settings({{1, 0}})));
  pieces.push_back(
      from(Direction::client_to_server, frame(http2::kHeaders, 0, 1, request.substr(0, 3)) +
                                            frame(http2::kContinuation, 0, 1, request.substr(3, 4)) +
                                            frame(http2::kContinuation, http2::kEndHeaders, 1, request.substr(7))));
  server.set_table_size(200);
  pieces.push_back(from(Direction::server_to_client, settings_ack() + server.headers(1, grpc_response(), false)));
  const std::string padded = std::string(1, '\3') + message("hello") + std::string(3, '\0');
  pieces.push_back(from(Direction::server_to_client, frame(http2::kData, http2::kPadded, 1, padded)));
  client.set_table_size(8192);
  pieces.push_back(from(Direction::client_to_server, settings_ack() + client.headers(3, grpc_request("/a/C"), true)));
  client.set_table_size(0);
  pieces.push_back(from(Direction::client_to_server, settings_ack() + client.headers(5, grpc_request("/a/D"), true)));
  pieces.push_back(from(Direction::server_to_client, server.headers(1, grpc_trailers(0), true)));
  pieces.push_back(from(Direction::client_to_server, rst_stream(3, 8) + goaway(0, 0, "bye")));
  const auto expected = frames_of(pieces);
  ASSERT_GT(expected.size(), 15u);
  EXPECT_EQ(frames_cut_everywhere(pieces), expected);
}

TEST(ConnectionState, HoldsARequestToUpgradeThatIsNotAnsweredYet) {
  const std::string request =
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n\r\n";
  HeaderEncoder server;
  const std::vector<Piece> pieces{
      from(Direction::client_to_server, request),
      from(Direction::server_to_client,
           "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"),
      from(Direction::server_to_client, settings({})),
      from(Direction::client_to_server, std::string(http2::kClientPreface) + settings({})),
      from(Direction::server_to_client, server.headers(1, grpc_response(), false))};
  const auto expected = frames_of(pieces);
  ASSERT_GT(expected.size(), 3u);
  EXPECT_EQ(frames_cut_everywhere(pieces), expected);
}

TEST(ConnectionState, OfADirectionThatCannotBeReadSaysWhy) {
  Side first;
  first.read(from(Direction::client_to_server, "garbage from the first byte on"));
  first.read(from(Direction::server_to_client, settings({})));
  const auto state = first.state(true);
  Side second;
  second.restore(state);
  EXPECT_FALSE(second.reader.readable(Direction::client_to_server));
  EXPECT_TRUE(second.reader.readable(Direction::server_to_client));
  EXPECT_EQ(second.listener.unreadable, first.listener.unreadable);
  EXPECT_EQ(second.reader.offset(Direction::client_to_server), 30u);
}

TEST(ConnectionState, ACallThatEndedBeforeIsToldAgainOnlyIfSomethingComes) {
  for (const bool something_comes : {false, true}) {
    HeaderEncoder client;
    Side first;
    first.read(from(Direction::client_to_server, std::string(http2::kClientPreface) + settings({})));
    first.read(from(Direction::server_to_client, settings({})));
    first.read(from(Direction::client_to_server, client.headers(1, grpc_request("/a/B"), false)));
    HeaderEncoder server;
    first.read(from(Direction::server_to_client, server.headers(1, grpc_response(), false)));
    first.read(from(Direction::client_to_server, rst_stream(1, 8), 5));
    Side second;
    second.restore(first.state(true));
    if (something_comes) second.read(from(Direction::server_to_client, data(1, message("late"), false), 6));
    second.builder.close(EndedBy::still_open, 7);
    ASSERT_EQ(second.calls.size(), something_comes ? 1u : 0u);
    if (!something_comes) continue;
    EXPECT_TRUE(second.calls[0].began_earlier);
    EXPECT_EQ(second.calls[0].ended_by, EndedBy::client_reset);
    EXPECT_EQ(second.calls[0].end_ns, 5);
    EXPECT_EQ(second.calls[0].reset_code, 8u);
    EXPECT_EQ(second.calls[0].response_message_count, 1u);
  }
}

TEST(ConnectionState, AMessageThatIsCutIsCountedAndSaysThatItsBeginningIsMissing) {
  HeaderEncoder client;
  Side first;
  first.read(from(Direction::client_to_server, std::string(http2::kClientPreface) + settings({})));
  first.read(from(Direction::server_to_client, settings({})));
  first.read(from(Direction::client_to_server, client.headers(1, grpc_request("/a/B"), false), 3));
  const auto body = data(1, message("first") + message("second"), true);
  first.read(from(Direction::client_to_server, body.substr(0, body.size() - 3), 4));
  std::vector<Call> calls;
  http2::CallBuilder builder(1, {.keep_bodies = true}, [&](Call&& call) { calls.push_back(std::move(call)); });
  http2::ConnectionReader reader(builder);
  capture::ConnectionState state;
  ASSERT_TRUE(state.ParseFromString(first.state(true)));
  builder.restore(state);
  reader.restore(state);
  const auto rest = body.substr(body.size() - 3);
  reader.read(Direction::client_to_server, {reinterpret_cast<const uint8_t*>(rest.data()), rest.size()}, 9);
  builder.close(EndedBy::still_open, 10);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].path, "/a/B");
  EXPECT_EQ(calls[0].start_ns, 3);
  EXPECT_EQ(calls[0].request_message_count, 2u);
  EXPECT_EQ(calls[0].request_bytes, 11u);
  ASSERT_EQ(calls[0].requests.size(), 1u);
  EXPECT_EQ(calls[0].requests[0].first_byte_ns, 4);
  EXPECT_EQ(calls[0].requests[0].body, "");
  EXPECT_EQ(calls[0].requests[0].error, "its beginning is not here");
}

// Whatever stands in a file, the reader does not fall over it.
TEST(ConnectionState, OfWhateverBytesIsTakenOrRefused) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto connection = load_fixture("zaino-zingo").front();
  const auto pieces = pieces_of(connection);
  Side side;
  std::size_t at = 0;
  for (; at < pieces.size() / 2; ++at) side.read(pieces[at]);
  const auto good = side.state(true);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    auto bytes = good;
    const int flips = std::uniform_int_distribution<>(1, 8)(random);
    for (int i = 0; i < flips; ++i) {
      bytes[std::uniform_int_distribution<std::size_t>(0, bytes.size() - 1)(random)] = static_cast<char>(random());
    }
    capture::ConnectionState state;
    if (!state.ParseFromString(bytes)) continue;
    Side other;
    other.builder.restore(state);
    other.reader.restore(state);
    refused += other.listener.unreadable.empty() ? 0 : 1;
    for (std::size_t i = at; i < std::min(at + 40, pieces.size()); ++i) other.read(pieces[i]);
    [[maybe_unused]] const auto again = other.state(false);
    other.builder.close(EndedBy::still_open, 0);
  }
  EXPECT_GT(refused, 0);
}

TEST(HpackState, OfATableThatCannotBeIsRefused) {
  http2::HpackInflater inflater;
  EXPECT_FALSE(inflater.restore(
      {.table = {{"name", std::string(5000, 'a')}}, .table_size = 4096, .table_limit = 4096, .size_due = {}}));
  EXPECT_FALSE(inflater.restore({.table = {}, .table_size = 4097, .table_limit = 4096, .size_due = {}}));
  EXPECT_FALSE(inflater.restore({.table = {}, .table_size = 1 << 21, .table_limit = 1 << 21, .size_due = {}}));
}

TEST(HpackState, RemembersThatASizeUpdateIsDue) {
  http2::HpackInflater first;
  first.set_table_size(100);
  http2::HpackInflater second;
  ASSERT_TRUE(second.restore(first.state()));
  http2::HeaderList fields;
  const std::vector<uint8_t> without_update{0x82};  // :method GET
  EXPECT_FALSE(second.inflate(without_update, fields));
  http2::HpackInflater third;
  ASSERT_TRUE(third.restore(first.state()));
  const std::vector<uint8_t> with_update{0x20 | 31, 100 - 31, 0x82};
  EXPECT_TRUE(third.inflate(with_update, fields));
}

}  // namespace
}  // namespace ztape::test
