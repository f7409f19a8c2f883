// The fixtures against each other: what differs was found by an independent program (fixtures/differences.json).
#include <gtest/gtest.h>

#include "tests/e2e/replay_support.h"
#include "tests/support/fixture.h"

namespace ztape {
namespace {

using nlohmann::json;

const json& expectations() {
  static const json all = json::parse(test::read_file(test::fixture_path("differences.json")));
  return all;
}

// The chain that a fixture's server names.
std::string chain_of(const json& report) {
  for (const auto& skipped : report["skipped"]) {
    const std::string reason = skipped["reason"];
    const std::string before = "is on chain '";
    const auto at = reason.find(before);
    if (at == std::string::npos) continue;
    const auto start = at + before.size();
    return reason.substr(start, reason.find('\'', start) - start);
  }
  return "none";
}

// Without what the independent program does not say.
json differing_calls(const json& report, const std::string& reference, const std::string& target) {
  auto list = json::array();
  for (auto call : report["differing_calls"]) {
    if (call["reference"] != reference || call["target"] != target) continue;
    for (const char* key : {"reference", "target", "connection", "count"}) call.erase(key);
    list.push_back(std::move(call));
  }
  return list;
}

class Differences : public testing::TestWithParam<std::size_t> {
 protected:
  const json& expected_ = expectations().at(GetParam());
  test::TemporaryDirectory folder_;
};

TEST_P(Differences, AreFoundExactly) {
  const auto left = test::import_fixture(folder_, expected_["left"]);
  const auto right = test::import_fixture(folder_, expected_["right"]);
  test::ChildProcess server(test::serve_command(right, {"--accept-send-transaction"}));
  const auto target = "right=" + test::url_of(server);
  const std::vector<std::string> words{"--target", target,   "--rounds", "1",       "--warmup",
                                       "0",        "--pace", "none",     "--rules", "none"};

  auto refused = words;
  refused.push_back("--allow-send-transaction=no-such-chain");
  const auto chain = chain_of(test::replay(folder_, left, refused).report);
  auto allowed = words;
  allowed.push_back("--allow-send-transaction=" + chain);
  const auto replayed = test::replay(folder_, left, allowed);

  EXPECT_EQ(replayed.status, 1) << replayed.err;
  EXPECT_EQ(replayed.report["verdict"], "differ");
  EXPECT_EQ(differing_calls(replayed.report, "recording", "right"), expected_["different"]);
  EXPECT_EQ(replayed.report["targets"][0]["calls"], expected_["calls"]);
  EXPECT_EQ(replayed.report["targets"][0]["agree"], expected_["same"]);
  EXPECT_EQ(replayed.report["targets"][0]["failed"], 0);
  EXPECT_EQ(replayed.report["skipped"], json::array());
}

// Many wallets, rounds, warm-up, both servers: the same differences, and a transaction is still sent only once.
TEST_P(Differences, AreTheSameUnderLoad) {
  const auto left = test::import_fixture(folder_, expected_["left"]);
  const auto right = test::import_fixture(folder_, expected_["right"]);
  test::ChildProcess same(test::serve_command(left));
  test::ChildProcess other(test::serve_command(right));
  const auto replayed =
      test::replay(folder_, left,
                   {"--target", "left=" + test::url_of(same), "--target", "right=" + test::url_of(other), "-c", "8",
                    "--rounds", "3", "--warmup", "1", "--pace", "none"});
  EXPECT_EQ(replayed.status, 1) << replayed.err;
  EXPECT_EQ(differing_calls(replayed.report, "recording", "left"), json::array());
  auto expected = expected_["different"];
  for (auto call = expected.begin(); call != expected.end();) {
    call = (*call)["method"] == "SendTransaction" ? expected.erase(call) : call + 1;
  }
  EXPECT_EQ(differing_calls(replayed.report, "recording", "right"), expected);
  for (const auto& call : replayed.report["differing_calls"]) EXPECT_EQ(call["count"], 8 * 3) << call;
  for (const auto& target : replayed.report["targets"]) {
    EXPECT_EQ(target["connections"], 8 * 3);
    EXPECT_EQ(target["failed"], 0);
    EXPECT_EQ(target["rounds"], 3);
  }

  // With the other server's answers for right, nothing is said of the recording.
  const auto swapped =
      test::replay(folder_, left,
                   {"--target", "left=" + test::url_of(same), "--target", "right=" + test::url_of(other), "--rounds",
                    "1", "--warmup", "0", "--pace", "none", "--reference", "right"});
  EXPECT_EQ(swapped.status, 1) << swapped.err;
  const auto turned = differing_calls(swapped.report, "right", "left");
  ASSERT_EQ(turned.size(), expected.size());
  for (std::size_t i = 0; i < turned.size(); ++i) {
    EXPECT_EQ(turned[i]["stream"], expected[i]["stream"]);
    for (std::size_t f = 0; f < expected[i].value("fields", json::array()).size(); ++f) {
      EXPECT_EQ(turned[i]["fields"][f]["left"], expected[i]["fields"][f]["right"]);
      EXPECT_EQ(turned[i]["fields"][f]["right"], expected[i]["fields"][f]["left"]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Differences, testing::Range<std::size_t>(0, expectations().size()),
                         [](const auto& fixture) {
                           std::string name = expectations().at(fixture.param)["left"];
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Every fixture against itself: nothing differs, nothing fails, whatever its wallet did.
class EveryFixture : public testing::TestWithParam<std::string> {};

TEST_P(EveryFixture, AgreesWithItself) {
  test::TemporaryDirectory folder;
  const auto capture = test::import_fixture(folder, GetParam());
  test::ChildProcess server(test::serve_command(capture));
  const auto replayed =
      test::replay(folder, capture,
                   {"--target", "self=" + test::url_of(server), "--rounds", "2", "--warmup", "0", "--pace", "none"});
  EXPECT_EQ(replayed.status, 0) << replayed.err << replayed.page;
  EXPECT_EQ(replayed.report["verdict"], "agree");
  const auto& coverage = replayed.report["coverage"];
  uint64_t skipped = 0;
  for (const auto& entry : replayed.report["skipped"]) {
    skipped += entry["calls"].get<uint64_t>();
    EXPECT_FALSE(entry["unreadable"]) << entry;
  }
  EXPECT_EQ(coverage["calls_replayed"].get<uint64_t>() + skipped, coverage["calls"]);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, EveryFixture,
                         testing::Values("zaino-zingo", "ztreamer-zingo", "zaino-zingo-send", "zaino-zingo-memo-error",
                                         "zaino-python", "ztreamer-python", "zebra-ghz", "zaino-okhttp",
                                         "lightwalletd-grpcjs"),
                         [](const auto& fixture) {
                           std::string name = fixture.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// The targets' answers to each other, where both differ from the recording.
TEST(Replay, TwoTargetsThatDifferInTheirOwnWaysAreComparedToo) {
  test::TemporaryDirectory folder;
  const auto capture = test::import_fixture(folder, "zaino-zingo");
  test::ChildProcess one(test::serve_command(capture, {"--mutate", "field:LightdInfo.blockHeight+1"}));
  test::ChildProcess two(test::serve_command(capture, {"--mutate", "field:LightdInfo.blockHeight+2"}));
  const auto replayed = test::replay(folder, capture,
                                     {"--target", "one=" + test::url_of(one), "--target", "two=" + test::url_of(two),
                                      "--rounds", "1", "--warmup", "0", "--pace", "none"});
  EXPECT_EQ(replayed.status, 1) << replayed.err;
  const auto between = differing_calls(replayed.report, "one", "two");
  ASSERT_EQ(between.size(), 1u);
  EXPECT_EQ(between[0]["method"], "GetLightdInfo");
  const auto& field = between[0]["fields"][0];
  EXPECT_EQ(field["field"], "blockHeight");
  EXPECT_EQ(field["left"].get<uint64_t>() + 1, field["right"]);
  EXPECT_EQ(differing_calls(replayed.report, "recording", "one").size(), 1u);
  EXPECT_EQ(differing_calls(replayed.report, "recording", "two").size(), 1u);
}

}  // namespace
}  // namespace ztape
