// Replay against grpc++ servers, which know nothing of our code: the same, one changed field, one dead.
#include <gtest/gtest.h>

#include <csignal>

#include "tests/e2e/replay_support.h"

namespace ztape {
namespace {

using nlohmann::json;
using test::ChildProcess;

class ReplayToGrpc : public testing::Test {
 protected:
  // A wallet's session with a grpc++ server, recorded by our proxy.
  std::string record() {
    ChildProcess server({ZTAPE_PEER_SERVER});
    const auto capture = folder_.file("session.ztape");
    ChildProcess proxy(
        {test::ztape(), "proxy", "--upstream", test::url_of(server), "--listen", "127.0.0.1:0", "-w", capture});
    const auto address = test::url_of(proxy).substr(std::string("http://").size());
    const auto wallet = test::run({ZTAPE_PEER_CLIENT, address, "session"});
    EXPECT_EQ(wallet.status, 0) << wallet.err;
    proxy.signal(SIGINT);
    EXPECT_EQ(proxy.wait(), 0) << proxy.stderr_text();
    return capture;
  }

  test::Replayed replay(const std::string& capture, ChildProcess& one, const std::string& two,
                        const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{
        "--target", "one=" + test::url_of(one), "--target", "two=" + two, "--rounds", "1", "--warmup", "0", "--pace",
        "none"};
    words.insert(words.end(), more.begin(), more.end());
    return test::replay(folder_, capture, words);
  }

  test::TemporaryDirectory folder_;
};

TEST_F(ReplayToGrpc, IdenticalServersAgree) {
  const auto capture = record();
  ChildProcess one({ZTAPE_PEER_SERVER});
  ChildProcess two({ZTAPE_PEER_SERVER});
  const auto replayed = replay(capture, one, test::url_of(two), {"-c", "4", "--rounds", "2", "--warmup", "1"});
  EXPECT_EQ(replayed.status, 0) << replayed.err << replayed.page;
  EXPECT_EQ(replayed.report["verdict"], "agree");
  EXPECT_EQ(replayed.report["differing_calls"], json::array());
  const uint64_t calls = replayed.report["coverage"]["calls"];
  EXPECT_GT(calls, 30u);
  for (const auto& target : replayed.report["targets"]) {
    EXPECT_EQ(target["agree"], calls * 4 * 2) << target;
    EXPECT_EQ(target["connections"], 4 * 2);
  }
}

TEST_F(ReplayToGrpc, OneChangedFieldInOneMessageIsNamed) {
  const auto capture = record();
  ChildProcess one({ZTAPE_PEER_SERVER});
  // The session streams blocks 1000 to 1099, then 1100 to 1199: block 150 of the server is message 49 of the second.
  ChildProcess two({ZTAPE_PEER_SERVER, "--change", "CompactBlock.time@150"});
  const auto replayed = replay(capture, one, test::url_of(two));
  EXPECT_EQ(replayed.status, 1) << replayed.err << replayed.page;
  const auto& differing = replayed.report["differing_calls"];
  ASSERT_EQ(differing.size(), 1u) << differing;
  EXPECT_EQ(differing[0]["reference"], "recording");
  EXPECT_EQ(differing[0]["target"], "two");
  EXPECT_EQ(differing[0]["method"], "GetBlockRange");
  EXPECT_EQ(differing[0]["request_hex"], "0a0308cc08120308af09");  // 1100 to 1199
  EXPECT_EQ(differing[0]["first_differing_message"], 49);
  ASSERT_EQ(differing[0]["fields"].size(), 1u);
  const auto& field = differing[0]["fields"][0];
  EXPECT_EQ(field["field"], "time");
  EXPECT_EQ(field["left"].get<uint64_t>() + 1, field["right"]);
  const auto& groups = replayed.report["differences"];
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0]["path"], "time");
  EXPECT_EQ(groups[0]["count"], 1);
  EXPECT_EQ(groups[0]["examples"][0]["message"], 49);
  const auto stream = differing[0]["stream"].dump();
  EXPECT_NE(
      replayed.page.find("stream " + stream + ", message 49: " + field["left"].dump() + " | " + field["right"].dump()),
      std::string::npos)
      << replayed.page;
}

TEST_F(ReplayToGrpc, ADeadServerIsNamedAndTheOthersResultsStay) {
  const auto capture = record();
  ChildProcess one({ZTAPE_PEER_SERVER});
  std::string dead;
  {
    ChildProcess two({ZTAPE_PEER_SERVER});
    dead = test::url_of(two);
    two.signal(SIGKILL);
    two.wait();
  }
  const auto replayed = replay(capture, one, dead, {"--rounds", "3"});
  EXPECT_EQ(replayed.status, 3);
  EXPECT_NE(replayed.err.find("two is unreachable"), std::string::npos) << replayed.err;
  EXPECT_NE(replayed.page.find("Verdict: incomplete"), std::string::npos) << replayed.page;
  const auto& targets = replayed.report["targets"];
  EXPECT_EQ(targets[0]["agree"], targets[0]["calls"]);
  EXPECT_EQ(targets[0]["rounds"], 3);
  EXPECT_EQ(targets[1]["failed"], targets[1]["calls"]);
  EXPECT_EQ(targets[1]["rounds"], 1);  // and then it was left alone
  EXPECT_FALSE(targets[1]["unreachable"].is_null());
}

TEST_F(ReplayToGrpc, AServerThatDiesUnderWayLosesItsCallsAndWinsOverADifference) {
  const auto capture = record();
  ChildProcess one({ZTAPE_PEER_SERVER, "--change", "CompactBlock.time@150"});
  ChildProcess two({ZTAPE_PEER_SERVER, "--die-after", "5"});
  const auto replayed = replay(capture, one, test::url_of(two));
  EXPECT_EQ(replayed.status, 3) << "incomplete wins over different";
  EXPECT_EQ(replayed.report["verdict"], "incomplete");
  ASSERT_EQ(replayed.report["differing_calls"].size(), 1u);
  EXPECT_EQ(replayed.report["differing_calls"][0]["target"], "one");
  const auto& two_result = replayed.report["targets"][1];
  EXPECT_EQ(two_result["agree"], 5);
  EXPECT_EQ(two_result["failed"].get<uint64_t>() + 5, two_result["calls"]);
  ASSERT_EQ(replayed.report["incomplete"].size(), 1u);
  EXPECT_NE(replayed.report["incomplete"][0].get<std::string>().find("two: " + two_result["failed"].dump() + " calls"),
            std::string::npos)
      << replayed.report["incomplete"];
}

TEST_F(ReplayToGrpc, CtrlCKeepsWhatWasMeasured) {
  const auto capture = record();
  ChildProcess server({ZTAPE_PEER_SERVER});
  const auto file = folder_.file("interrupted.json");
  ChildProcess replaying({test::ztape(), "replay", "-v", "-r", capture, "--target", "one=" + test::url_of(server),
                          "--rounds", "1000000", "--warmup", "0", "--pace", "none", "-o", file});
  replaying.wait_for_stderr("round 3/");
  replaying.signal(SIGINT);
  EXPECT_EQ(replaying.wait(), 3);
  EXPECT_NE(replaying.stderr_text().find("interrupted in round"), std::string::npos);
  EXPECT_NE(replaying.stdout_text().find("Verdict: incomplete"), std::string::npos);
  EXPECT_NE(replaying.stdout_text().find("GetBlockRange"), std::string::npos);
}

}  // namespace
}  // namespace ztape
