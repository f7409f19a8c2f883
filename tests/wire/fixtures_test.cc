// The reader against an independent decoder: the recorded traffic of real programs, cut in every way.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/calls.h"
#include "tests/support/fixture.h"
#include "tests/wire/fixture_test_name.h"

namespace ztape::test {
namespace {

void expect_calls(const FixtureConnection& connection, std::span<const Piece> pieces, bool with_times,
                  const std::string& what) {
  const auto calls = read_calls(pieces);
  ASSERT_EQ(calls.size(), connection.calls.size()) << what;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ASSERT_EQ(summary_of(calls[i], with_times), expected_summary(connection.calls[i], with_times)) << what;
    ASSERT_EQ(calls[i].unreadable_reason, "") << what;
  }
}

// Cuts the piece that holds byte `at` of all bytes in two.
std::vector<Piece> cut_at(const std::vector<Piece>& pieces, std::size_t at) {
  std::vector<Piece> cut;
  for (const auto& piece : pieces) {
    if (at > 0 && at < piece.bytes.size()) {
      cut.push_back({piece.direction, piece.bytes.substr(0, at), piece.time_ns});
      cut.push_back({piece.direction, piece.bytes.substr(at), piece.time_ns});
    } else {
      cut.push_back(piece);
    }
    at = at >= piece.bytes.size() ? at - piece.bytes.size() : 0;
  }
  return cut;
}

std::vector<Piece> cut_at_random(const std::vector<Piece>& pieces, std::mt19937& random, std::size_t longest) {
  std::vector<Piece> cut;
  std::uniform_int_distribution<std::size_t> length(1, longest);
  for (const auto& piece : pieces) {
    for (std::size_t at = 0; at < piece.bytes.size();) {
      const std::size_t count = std::min(length(random), piece.bytes.size() - at);
      cut.push_back({piece.direction, piece.bytes.substr(at, count), piece.time_ns});
      at += count;
    }
  }
  return cut;
}

class Fixture : public testing::TestWithParam<std::string> {};

TEST_P(Fixture, GivesTheCallsOfTheIndependentDecoderWithTheirTimes) {
  for (const auto& connection : load_fixture(GetParam())) {
    expect_calls(connection, pieces_of(connection), true, "connection " + std::to_string(connection.number));
  }
}

TEST_P(Fixture, GivesTheSameCallsWhereverTheBytesAreCut) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const auto& connection : load_fixture(GetParam())) {
    const auto pieces = pieces_of(connection);
    expect_calls(connection, cut_at_random(pieces, random, 1), false, "one byte at a time");
    for (const std::size_t longest : {3, 10, 100, 5000}) {
      for (int round = 0; round < 3; ++round) {
        expect_calls(connection, cut_at_random(pieces, random, longest), false, "up to " + std::to_string(longest));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Fixture, testing::ValuesIn(fixture_names()), fixture_test_name);

TEST(Reader, GivesTheSameCallsCutAtEverySingleOffset) {
  for (const auto& name : {"lightwalletd-grpcurl", "zebra-ghz", "zaino-zingo-send"}) {
    for (const auto& connection : load_fixture(name)) {
      const std::size_t total = connection.bytes[0].size() + connection.bytes[1].size();
      if (total > 20'000) continue;
      const auto pieces = pieces_of(connection);
      for (std::size_t at = 1; at < total; ++at) {
        expect_calls(connection, cut_at(pieces, at), false, name + std::string(" cut at ") + std::to_string(at));
        if (HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace ztape::test
