// Every kind of --mutate rule: what it changes, what it leaves, how it is refused.
#include "replay/mutate.h"

#include <gtest/gtest.h>

#include "proto/service.pb.h"
#include "tests/serve/recorded.h"
#include "tests/support/frames.h"

namespace ztape::replay {
namespace {

namespace rpc = cash::z::wallet::sdk::rpc;
using test::answer;

std::string block(uint64_t height, uint32_t time) {
  rpc::CompactBlock made;
  made.set_height(height);
  made.set_time(time);
  made.add_vtx()->set_fee(7);
  made.add_vtx()->set_fee(8);
  return made.SerializeAsString();
}

// Two ranges of three blocks, one GetBlock, an info, a subtree root.
std::vector<Answer> answers() {
  rpc::LightdInfo lightd;
  lightd.set_vendor("Zaino");
  lightd.set_taddrsupport(true);
  rpc::SubtreeRoot root;
  root.set_completingblockhash("abc");
  return {answer("GetBlockRange", "a", {block(1, 10), block(2, 20), block(3, 30)}, 1),
          answer("GetBlockRange", "b", {block(4, 40), block(5, 50), block(6, 60)}, 2),
          answer("GetBlock", "c", {block(7, 70)}, 3), answer("GetLightdInfo", "", {lightd.SerializeAsString()}, 4),
          answer("GetSubtreeRoots", "", {root.SerializeAsString()}, 5)};
}

// The answers after these rules; a failure is a test failure.
std::vector<Answer> changed(const std::vector<std::string>& rules) {
  std::vector<Mutation> parsed;
  for (const auto& rule : rules) {
    auto mutation = parse_mutation(rule);
    if (!mutation) {
      ADD_FAILURE() << mutation.error().line();
      return {};
    }
    parsed.push_back(*mutation);
  }
  auto list = answers();
  const auto applied = apply_mutations(parsed, list);
  EXPECT_TRUE(applied) << (applied ? "" : applied.error().line());
  return list;
}

std::vector<uint32_t> times(const std::vector<Answer>& list) {
  std::vector<uint32_t> found;
  for (const auto& each : list) {
    if (!each.path.ends_with("GetBlockRange") && !each.path.ends_with("GetBlock")) continue;
    for (const auto& message : each.messages) {
      rpc::CompactBlock decoded;
      EXPECT_TRUE(decoded.ParseFromString(message.body));
      found.push_back(decoded.time());
    }
  }
  return found;
}

std::string refusal(const std::string& rule) {
  const auto mutation = parse_mutation(rule);
  if (!mutation) {
    EXPECT_EQ(mutation.error().code, ErrorCode::usage);
    return mutation.error().line();
  }
  auto list = answers();
  const auto applied = apply_mutations({*mutation}, list);
  return applied ? "" : applied.error().line();
}

TEST(Mutate, AddsToAFieldOfAllMessagesOfAType) {
  EXPECT_EQ(times(changed({"field:CompactBlock.time+1"})), (std::vector<uint32_t>{11, 21, 31, 41, 51, 61, 71}));
  EXPECT_EQ(times(changed({"field:CompactBlock.time-10"})), (std::vector<uint32_t>{0, 10, 20, 30, 40, 50, 60}));
}

TEST(Mutate, CountsMessagesOfATypeOverAllAnswers) {
  EXPECT_EQ(times(changed({"field:CompactBlock.time+1@1"})), (std::vector<uint32_t>{11, 20, 30, 40, 50, 60, 70}));
  EXPECT_EQ(times(changed({"field:CompactBlock.time=0@5"})), (std::vector<uint32_t>{10, 20, 30, 40, 0, 60, 70}));
}

TEST(Mutate, LeavesEveryOtherMessageAsItsRecordedBytes) {
  const auto before = answers();
  const auto after = changed({"field:CompactBlock.time+1@1"});
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (std::size_t k = 0; k < before[i].messages.size(); ++k) {
      if (i == 0 && k == 0) continue;
      EXPECT_EQ(after[i].messages[k].body, before[i].messages[k].body);
    }
  }
}

TEST(Mutate, SetsTextNumbersBoolsAndNestedFields) {
  const auto list = changed({"field:LightdInfo.vendor=Other", "field:LightdInfo.taddrSupport=false",
                             "field:CompactBlock.vtx.fee=99@7", "field:SubtreeRoot.rootHash=00ff"});
  rpc::LightdInfo lightd;
  ASSERT_TRUE(lightd.ParseFromString(list[3].messages[0].body));
  EXPECT_EQ(lightd.vendor(), "Other");
  EXPECT_FALSE(lightd.taddrsupport());
  rpc::CompactBlock decoded;
  ASSERT_TRUE(decoded.ParseFromString(list[2].messages[0].body));
  EXPECT_EQ(decoded.vtx(0).fee(), 99u);
  EXPECT_EQ(decoded.vtx(1).fee(), 99u);
  rpc::SubtreeRoot root;
  ASSERT_TRUE(root.ParseFromString(list[4].messages[0].body));
  EXPECT_EQ(root.roothash(), std::string("\x00\xff", 2));
}

TEST(Mutate, AValueMayHoldAnAtSign) {
  const auto list = changed({"field:LightdInfo.vendor=me@home"});
  rpc::LightdInfo lightd;
  ASSERT_TRUE(lightd.ParseFromString(list[3].messages[0].body));
  EXPECT_EQ(lightd.vendor(), "me@home");
}

TEST(Mutate, KeepsFieldsItDoesNotKnow) {
  auto mutation = parse_mutation("field:SubtreeRoot.completingBlockHeight=5");
  ASSERT_TRUE(mutation);
  std::vector<Answer> list{answer("GetSubtreeRoots", "", {std::string("\x9a\x06\x01x", 4)})};  // field 99
  ASSERT_TRUE(apply_mutations({*mutation}, list));
  EXPECT_NE(list[0].messages[0].body.find("\x9a\x06\x01x"), std::string::npos);
}

TEST(Mutate, ReversesBytes) {
  const auto list = changed({"reverse:SubtreeRoot.completingBlockHash"});
  rpc::SubtreeRoot root;
  ASSERT_TRUE(root.ParseFromString(list[4].messages[0].body));
  EXPECT_EQ(root.completingblockhash(), "cba");
}

TEST(Mutate, DropsRepeatsAndSwapsTheNthMessageOfEveryAnswerOfAMethod) {
  EXPECT_EQ(times(changed({"drop:GetBlockRange@2"})), (std::vector<uint32_t>{10, 30, 40, 60, 70}));
  EXPECT_EQ(times(changed({"repeat:GetBlockRange@3"})), (std::vector<uint32_t>{10, 20, 30, 30, 40, 50, 60, 60, 70}));
  EXPECT_EQ(times(changed({"swap:GetBlockRange@2"})), (std::vector<uint32_t>{10, 30, 20, 40, 60, 50, 70}));
}

TEST(Mutate, WithoutANumberDropsRepeatsAndSwapsAll) {
  EXPECT_EQ(times(changed({"drop:GetBlockRange"})), (std::vector<uint32_t>{70}));
  EXPECT_EQ(times(changed({"repeat:GetBlock"})), (std::vector<uint32_t>{10, 20, 30, 40, 50, 60, 70, 70}));
  EXPECT_EQ(times(changed({"swap:GetBlockRange"})), (std::vector<uint32_t>{20, 10, 30, 50, 40, 60, 70}));
}

TEST(Mutate, SetsStatusAndMessageAndKeepsTheMessages) {
  const auto list = changed({"status:GetBlockRange=INTERNAL@2", "message:GetBlock=50% \xc3\xa9", "status:GetBlock=5"});
  EXPECT_EQ(*http2::find_header(list[0].trailers, "grpc-status"), "0");
  EXPECT_EQ(*http2::find_header(list[1].trailers, "grpc-status"), "13");
  EXPECT_EQ(list[1].messages.size(), 3u);
  EXPECT_EQ(*http2::find_header(list[2].trailers, "grpc-message"), "50%25 %C3%A9");
  EXPECT_EQ(*http2::find_header(list[2].trailers, "grpc-status"), "5");
}

TEST(Mutate, RulesApplyOneAfterAnother) {
  EXPECT_EQ(times(changed({"drop:GetBlockRange@1", "field:CompactBlock.time+1@1"})),
            (std::vector<uint32_t>{21, 30, 50, 60, 70}));
}

TEST(Mutate, AChangedMessageStillFitsItsFrames) {
  const auto list = changed({"field:LightdInfo.vendor=a much longer name than before"});
  const auto& message = list[3].messages[0];
  std::size_t length = 0;
  for (const auto& piece : message.pieces) length += piece.length;
  EXPECT_EQ(length, kMessagePrefixBytes + message.body.size());
}

TEST(Mutate, SaysWhichPartOfARuleIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "'' is no rule"},
      {"explode:GetBlock", "'explode' is no rule"},
      {"drop", "':' is missing"},
      {"drop:GetBlok", "no method 'GetBlok'"},
      {"drop:GetBlockRange@0", "counting starts at 1"},
      {"drop:GetBlockRange@x", "'x' after '@' is not a number"},
      {"drop:GetBlockRange@99999999999999999999", "counting starts at 1"},
      {"field:CompactBlok.time+1", "no method answers with a message 'CompactBlok'"},
      {"field:CompactBlock+1", "no field named"},
      {"field:CompactBlock.tim+1", "CompactBlock has no field 'tim'"},
      {"field:CompactBlock.time.x+1", "'time' is no message"},
      {"field:CompactBlock.vtx=1", "'vtx' is repeated"},
      {"field:CompactBlock.chainMetadata=1", "'chainMetadata' is a message"},
      {"field:CompactBlock.time", "'=VALUE', '+NUMBER' or '-NUMBER' is missing"},
      {"field:CompactBlock.time+x", "'x' is not a number"},
      {"field:CompactBlock.time=-1", "'-1' is no value for 'time'"},
      {"field:CompactBlock.time=4294967296", "is no value for 'time'"},
      {"field:LightdInfo.vendor+1", "'vendor' is not an integer"},
      {"field:LightdInfo.taddrSupport=yes", "'yes' is no value"},
      {"field:CompactBlock.hash=xyz", "hex is needed"},
      {"reverse:CompactBlock.time", "'time' is not a bytes field"},
      {"status:GetBlock", "'=' and a value are missing"},
      {"status:GetBlock=BROKEN", "'BROKEN' is no gRPC status"},
      {"status:GetBlock=17", "'17' is no gRPC status"},
  };
  for (const auto& [rule, part] : cases) {
    const auto mutation = parse_mutation(rule);
    ASSERT_FALSE(mutation) << rule;
    EXPECT_NE(mutation.error().line().find(part), std::string::npos) << mutation.error().line();
  }
}

TEST(Mutate, ARuleThatChangesNothingIsRefused) {
  EXPECT_NE(refusal("drop:GetTreeState@1").find("the capture has no GetTreeState"), std::string::npos);
  EXPECT_NE(refusal("drop:GetBlockRange@4").find("no answer of GetBlockRange has that message"), std::string::npos);
  EXPECT_NE(refusal("swap:GetBlock").find("no answer of GetBlock has that message"), std::string::npos);
  EXPECT_NE(refusal("field:CompactBlock.time+1@8").find("no recorded CompactBlock has it at that place"),
            std::string::npos);
  EXPECT_NE(refusal("field:TreeState.height+1").find("no recorded TreeState"), std::string::npos);
  EXPECT_NE(refusal("status:GetBlock=INTERNAL@2").find("no such answer of GetBlock"), std::string::npos);
  EXPECT_NE(refusal("field:CompactBlock.time-11").find("would leave the range"), std::string::npos);
}

}  // namespace
}  // namespace ztape::replay
