#include "replay/compare.h"

#include <gtest/gtest.h>

#include "proto/service.pb.h"
#include "tests/replay/recorded.h"

namespace ztape::replay {
namespace {

using http2::Call;
using http2::EndedBy;
using test::stream_call;
using test::unary_call;

// An answer with these messages that ended as the recorded one did.
ReplayedAnswer answer(const Call& recorded, const std::vector<std::string>& messages) {
  ReplayedAnswer made(recorded);
  for (const auto& message : messages) made.add_message(message);
  made.outcome = outcome_of(recorded);
  return made;
}

Call cancelled(Call call) {
  call.ended_by = EndedBy::client_reset;
  call.grpc_status.reset();
  call.reset_code = 8;
  return call;
}

std::string tree_state(uint64_t height, const std::string& hash) {
  cash::z::wallet::sdk::rpc::TreeState state;
  state.set_height(height);
  state.set_hash(hash);
  return state.SerializeAsString();
}

TEST(Compare, EqualAnswersHaveNoDifference) {
  const auto call = stream_call(1, "GetBlockRange", 0, {1, 2, 3}, 4);
  EXPECT_FALSE(compare_with_recording(call, answer(call, {"m0", "m1", "m2"})).any());
}

TEST(Compare, NamesTheFieldsOfTheFirstDifferingMessage) {
  auto call = unary_call(1, "GetTreeState", 0, 1, "", tree_state(7, "aa"));
  const auto found = compare_with_recording(call, answer(call, {tree_state(8, "aa")}));
  EXPECT_EQ(found.first_differing_message, 0u);
  ASSERT_EQ(found.fields.size(), 1u);
  EXPECT_EQ(found.fields[0].path, "height");
  EXPECT_EQ(found.fields[0].left, FieldValue(uint64_t{7}));
  EXPECT_EQ(found.fields[0].right, FieldValue(uint64_t{8}));
  EXPECT_FALSE(found.messages || found.grpc_status || found.grpc_message || found.http_status || found.ended_by);
}

TEST(Compare, SwappedMessagesDifferFromTheFirstOfThem) {
  const auto call = stream_call(1, "GetBlockRange", 0, {1, 2, 3}, 4);
  const auto found = compare_with_recording(call, answer(call, {"m0", "m2", "m1"}));
  EXPECT_EQ(found.first_differing_message, 1u);
  EXPECT_FALSE(found.messages);
}

TEST(Compare, CountsMessages) {
  const auto call = stream_call(1, "GetBlockRange", 0, {1, 2, 3}, 4);
  const auto shorter = compare_with_recording(call, answer(call, {"m0", "m1"}));
  EXPECT_EQ(shorter.messages, std::pair(uint64_t{3}, uint64_t{2}));
  EXPECT_FALSE(shorter.first_differing_message);
  const auto longer = compare_with_recording(call, answer(call, {"m0", "m1", "m2", "m3"}));
  EXPECT_EQ(longer.messages, std::pair(uint64_t{3}, uint64_t{4}));
  EXPECT_FALSE(longer.first_differing_message);
}

TEST(Compare, TellsStatusAndMessageText) {
  auto call = unary_call(1, "GetTransaction", 0, 1);
  call.responses.clear();
  call.grpc_status = 13;
  call.grpc_message = "no such transaction";
  auto replayed = answer(call, {});
  EXPECT_FALSE(compare_with_recording(call, replayed).any());
  replayed.outcome.grpc_status = 5;
  replayed.outcome.grpc_message = "not found";
  const auto found = compare_with_recording(call, replayed);
  EXPECT_EQ(found.grpc_status, std::pair(std::optional(13), std::optional(5)));
  EXPECT_EQ(found.grpc_message, std::pair(std::string("no such transaction"), std::string("not found")));
}

TEST(Compare, AnAbsentStatusMessageIsAnEmptyOne) {
  auto call = unary_call(1, "GetBlock", 0, 1);
  call.grpc_message = "";
  auto replayed = answer(call, {""});
  call.grpc_message.reset();
  EXPECT_FALSE(compare_with_recording(call, replayed).any());
}

TEST(Compare, TellsAnHttpErrorAndAMissingGrpcStatus) {
  const auto call = unary_call(1, "GetBlock", 0, 1);
  ReplayedAnswer replayed(call);
  replayed.outcome.http_status = 502;
  replayed.outcome.ended_by = EndedBy::trailers;
  const auto found = compare_with_recording(call, replayed);
  EXPECT_EQ(found.http_status, std::pair(std::optional(200), std::optional(502)));
  EXPECT_EQ(found.grpc_status, std::pair(std::optional(0), std::optional<int>()));
  EXPECT_EQ(found.messages, std::pair(uint64_t{1}, uint64_t{0}));
}

TEST(Compare, TellsAResetFromTrailers) {
  auto call = stream_call(1, "GetBlockRange", 0, {1}, 4);
  call.ended_by = EndedBy::server_reset;
  call.reset_code = 2;
  call.grpc_status.reset();
  auto replayed = answer(call, {"m0"});
  EXPECT_FALSE(compare_with_recording(call, replayed).any());
  replayed.outcome.ended_by = EndedBy::trailers;
  replayed.outcome.reset_code.reset();
  replayed.outcome.grpc_status = 0;
  EXPECT_EQ(compare_with_recording(call, replayed).ended_by,
            std::pair(std::string("reset INTERNAL_ERROR"), std::string("trailers")));
}

TEST(Compare, ACancelledCallIsComparedUpToTheCancel) {
  const auto call = cancelled(stream_call(1, "GetBlockRange", 0, {1, 2, 3}, 4));
  EXPECT_FALSE(compare_with_recording(call, answer(call, {"m0", "m1", "m2"})).any());
  // More or less may cross the cancel.
  EXPECT_FALSE(compare_with_recording(call, answer(call, {"m0", "m1"})).any());
  EXPECT_FALSE(compare_with_recording(call, answer(call, {"m0", "m1", "m2", "m3"})).any());
  // The server was done before the cancel reached it.
  auto done = answer(call, {"m0", "m1", "m2", "m3"});
  done.outcome.ended_by = EndedBy::trailers;
  done.outcome.grpc_status = 0;
  EXPECT_FALSE(compare_with_recording(call, done).any());
  // What both said is compared.
  EXPECT_EQ(compare_with_recording(call, answer(call, {"m0", "xx"})).first_differing_message, 1u);
}

TEST(Compare, AnAnswerThatEndsShortOfTheCancelDiffers) {
  const auto call = cancelled(stream_call(1, "GetBlockRange", 0, {1, 2, 3}, 4));
  auto replayed = answer(call, {"m0"});
  replayed.outcome.ended_by = EndedBy::trailers;
  replayed.outcome.grpc_status = 13;
  const auto found = compare_with_recording(call, replayed);
  EXPECT_EQ(found.messages, std::pair(uint64_t{3}, uint64_t{1}));
  EXPECT_EQ(found.grpc_status, std::pair(std::optional<int>(), std::optional(13)));
}

TEST(Compare, AServersCancelOfARecordedCancelIsNoDifference) {
  const auto call = cancelled(stream_call(1, "GetBlockRange", 0, {1, 2, 3}, 4));
  auto replayed = answer(call, {"m0", "m1"});
  replayed.outcome.ended_by = EndedBy::server_reset;
  replayed.outcome.reset_code = 8;
  EXPECT_FALSE(compare_with_recording(call, replayed).any());
}

TEST(Compare, BetweenTargetsTheSameDeviationIsNoDifference) {
  const auto call = unary_call(1, "GetTreeState", 0, 1, "", tree_state(7, "aa"));
  const auto same = compare_answers(call, answer(call, {tree_state(8, "aa")}), answer(call, {tree_state(8, "aa")}));
  EXPECT_FALSE(same.any());
  const auto other = compare_answers(call, answer(call, {tree_state(8, "aa")}), answer(call, {tree_state(9, "aa")}));
  ASSERT_EQ(other.fields.size(), 1u);
  EXPECT_EQ(other.fields[0].left, FieldValue(uint64_t{8}));
  EXPECT_EQ(other.fields[0].right, FieldValue(uint64_t{9}));
}

TEST(Compare, BetweenTargetsMessagesBeyondTheRecordingCount) {
  const auto call = stream_call(1, "GetBlockRange", 0, {1}, 4);
  const auto found = compare_answers(call, answer(call, {"m0", "x"}), answer(call, {"m0", "y"}));
  EXPECT_EQ(found.first_differing_message, 1u);
}

TEST(Compare, AnswersTooLongToKeepAreStillTold) {
  const auto call = stream_call(1, "GetBlockRange", 0, {1}, 4);
  const std::string large(kMaxKeptBytes + 1, 'x');
  EXPECT_FALSE(compare_answers(call, answer(call, {large}), answer(call, {large})).any());
  const auto found = compare_answers(call, answer(call, {large}), answer(call, {large + "y"}));
  EXPECT_EQ(found.first_differing_message, 0u);
  EXPECT_EQ(compare_with_recording(call, answer(call, {large})).first_differing_message, 0u);
}

TEST(Compare, RequestsAreShownWithThePrefixesBetweenTheirMessages) {
  auto call = unary_call(1, "GetTaddressBalanceStream", 0, 1, "\x0a\x01");
  EXPECT_EQ(request_hex(call), "0a01");
  call.requests.push_back(call.requests[0]);
  EXPECT_EQ(request_hex(call), "0a0100000000020a01");
}

}  // namespace
}  // namespace ztape::replay
