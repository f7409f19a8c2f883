// Real wallets' traffic through `ztape proxy`, cut elsewhere, is in the capture byte for byte.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "http2/frame.h"
#include "tests/support/child_process.h"
#include "tests/support/fixture.h"
#include "tests/support/fixture_recording.h"
#include "tests/support/recorded_bytes.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

using Parameters = std::tuple<std::string, Cuts>;

std::string cuts_name(Cuts cuts) {
  if (cuts == Cuts::random) return "random";
  return cuts == Cuts::tiny ? "tiny" : "as_recorded";
}

class ProxyFixtures : public testing::TestWithParam<Parameters> {};

// "c2s HEADERS": 76, ... as connectionN.frames.json has it.
nlohmann::json frame_counts(const RecordedTraffic::Connection& connection) {
  nlohmann::json counts = nlohmann::json::object();
  for (const auto direction : kDirections) {
    for (const auto& [type, number] : connection.frames[index(direction)]) {
      const std::string prefix = direction == Direction::client_to_server ? "c2s " : "s2c ";
      counts[prefix + http2::frame_type_name(static_cast<uint8_t>(type))] = number;
    }
  }
  return counts;
}

void expect_exported_bytes(const std::string& fixture, const std::vector<FixtureConnection>& expected,
                           const std::string& capture, const std::string& folder) {
  const auto exported = run({ztape(), "export", "-r", capture, "--format", "raw", "-o", folder});
  ASSERT_EQ(exported.status, 0) << exported.err;
  for (const auto& connection : expected) {
    const std::string stem = "/connection" + std::to_string(connection.number) + ".";
    for (const auto direction : kDirections) {
      const auto file = stem + std::string(name(direction));
      EXPECT_TRUE(read_file(folder + file) == read_file(fixture_path(fixture) + file)) << file;
    }
  }
}

// What the independent decoder says of each call, times aside.
void expect_shown_calls(const std::vector<FixtureConnection>& expected, const std::string& capture) {
  const auto shown = run({ztape(), "show", "-r", capture, "--calls", "--json"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  std::istringstream lines(shown.out);
  std::string line;
  for (const auto& connection : expected) {
    for (const auto& call : connection.calls) {
      ASSERT_TRUE(std::getline(lines, line)) << "a call is missing: " << call;
      const auto row = nlohmann::json::parse(line);
      EXPECT_EQ(row["connection"], connection.number);
      for (const auto& [field, value] : call.items()) {
        if (field.ends_with("_ns")) continue;
        EXPECT_EQ(row[field], value) << field << " of " << row;
      }
    }
  }
  EXPECT_FALSE(std::getline(lines, line)) << "one call too many: " << line;
}

TEST_P(ProxyFixtures, EveryByteOfBothDirectionsIsRecorded) {
  const auto& [fixture, cuts] = GetParam();
  const uint32_t seed = 20261201;
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  const TemporaryDirectory folder;
  const auto recording = record_fixture(fixture, folder.file("again.ztape"), cuts, seed);
  EXPECT_EQ(recording.status, 0) << recording.err;
  EXPECT_NE(recording.out.find("lost: nothing\n"), std::string::npos) << recording.out;

  const auto traffic = read_traffic(recording.capture);
  EXPECT_TRUE(traffic.whole);
  EXPECT_TRUE(traffic.gaps.empty());
  EXPECT_TRUE(traffic.states.empty()) << traffic.states.front().DebugString();
  const auto expected = load_fixture(fixture);
  ASSERT_EQ(traffic.connections.size(), expected.size());
  for (const auto& connection : expected) {
    SCOPED_TRACE("connection " + std::to_string(connection.number));
    const auto& recorded = traffic.connections.at(static_cast<ConnectionId>(connection.number));
    for (const auto direction : kDirections) {
      EXPECT_TRUE(recorded.bytes[index(direction)] == connection.bytes[index(direction)]) << name(direction);
    }
    ASSERT_EQ(recorded.ends.size(), 2u);
    for (const auto& end : recorded.ends) EXPECT_EQ(end.end(), capture::FIN);
    EXPECT_TRUE(recorded.closed);
    EXPECT_EQ(recorded.close.error(), "");
    EXPECT_EQ(recorded.close.first_side(), capture::DOWNSTREAM);  // each fixture's wallet closed first
    // Both sockets at the opening and at the close, and every second in between where the machine is slow.
    EXPECT_GE(recorded.tcp_infos.size(), 4u);
    const auto frames = nlohmann::json::parse(
        read_file(fixture_path(fixture) + "/connection" + std::to_string(connection.number) + ".frames.json"));
    EXPECT_EQ(frame_counts(recorded), frames["frames"]);
  }
  const auto verified = run({ztape(), "verify", "-r", recording.capture});
  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
  expect_exported_bytes(fixture, expected, recording.capture, folder.file("raw"));
  expect_shown_calls(expected, recording.capture);
}

INSTANTIATE_TEST_SUITE_P(All, ProxyFixtures,
                         testing::Combine(testing::ValuesIn(fixture_names()),
                                          testing::Values(Cuts::as_recorded, Cuts::random, Cuts::tiny)),
                         [](const testing::TestParamInfo<Parameters>& row) {
                           std::string text = std::get<0>(row.param) + "_" + cuts_name(std::get<1>(row.param));
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

}  // namespace
}  // namespace ztape::test
