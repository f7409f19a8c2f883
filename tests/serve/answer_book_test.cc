// Which recorded answer a request gets.
#include "replay/answer_book.h"

#include <gtest/gtest.h>

#include <set>

#include "proto/service.pb.h"
#include "tests/serve/recorded.h"
#include "tests/support/frames.h"

namespace ztape::replay {
namespace {

namespace rpc = cash::z::wallet::sdk::rpc;
using test::answer;
using test::path_of;

std::string block_id(uint64_t height) {
  rpc::BlockID id;
  id.set_height(height);
  return id.SerializeAsString();
}

std::string wire(const std::vector<std::string>& messages) {
  std::string bytes;
  for (const auto& body : messages) bytes += test::message(body);
  return bytes;
}

AnswerBook book_of(std::vector<Answer> answers) {
  return AnswerBook(std::move(answers), WriteMode::recorded, false);
}

TEST(AnswerBook, FindsEveryRecordedCallOfEveryFixture) {
  for (const auto& name : test::fixture_names()) {
    auto loaded = load_answers(test::recorded_fixture(name));
    EXPECT_EQ(loaded.unreadable_calls, 0u) << name;
    const auto recorded = loaded.answers;
    const auto book = book_of(std::move(loaded.answers));
    EXPECT_EQ(book.answer_count(), recorded.size());
    AnswerBook::Reader reader(book);
    for (const auto& each : recorded) {
      const auto* script = each.interleaved ? reader.next_interleaved(each.path, each.requests.front())
                                            : reader.next_whole(each.path, each.requests);
      ASSERT_NE(script, nullptr) << name << " stream " << each.stream;
      std::string bytes;
      for (const auto& message : each.messages) bytes += test::message(message.body);
      EXPECT_EQ(script->body, bytes) << name << " stream " << each.stream;
    }
  }
}

// What replaying the left capture against the right one served has to meet: the answers differ in those calls and in no
// others. A cancelled call says the same up to its cancel, and that is compared.
TEST(AnswerBook, AnswersTheOtherCapturesRequestsWithTheKnownDifferencesOnly) {
  const auto pairs = nlohmann::json::parse(test::read_file(test::fixture_path("differences.json")));
  ASSERT_FALSE(pairs.empty());
  for (const auto& pair : pairs) {
    const auto left = load_answers(test::recorded_fixture(pair["left"])).answers;
    const auto book = book_of(load_answers(test::recorded_fixture(pair["right"])).answers);
    AnswerBook::Reader reader(book);
    std::set<uint32_t> differing;
    for (const auto& each : left) {
      const auto* script = reader.next_whole(each.path, each.requests);
      ASSERT_NE(script, nullptr) << each.path << " stream " << each.stream;
      std::string bytes;
      for (const auto& message : each.messages) bytes += test::message(message.body);
      const auto value = [](const http2::HeaderList& fields, const char* name) {
        const auto* found = http2::find_header(fields, name);
        return found ? *found : std::string();
      };
      const bool cancelled = each.end == Answer::End::reset;
      const bool same_bytes =
          cancelled ? bytes.starts_with(script->body) || script->body.starts_with(bytes) : script->body == bytes;
      const bool same_outcome =
          cancelled || (value(script->trailers, "grpc-status") == value(each.trailers, "grpc-status") &&
                        value(script->trailers, "grpc-message") == value(each.trailers, "grpc-message"));
      if (!same_bytes || !same_outcome) differing.insert(each.stream);
    }
    std::set<uint32_t> expected;
    for (const auto& call : pair["different"]) expected.insert(call["stream"].get<uint32_t>());
    EXPECT_EQ(differing, expected) << pair["left"];
  }
}

TEST(AnswerBook, OnlyServerReflectionIsInterleavedInTheFixtures) {
  for (const auto& name : test::fixture_names()) {
    for (const auto& each : load_answers(test::recorded_fixture(name)).answers) {
      EXPECT_EQ(each.interleaved, each.path.starts_with("/grpc.reflection")) << each.path;
    }
  }
}

TEST(AnswerBook, TheNthRequestOfAConnectionGetsTheNthAnswerThenTheLastAgain) {
  const auto book =
      book_of({answer("GetLatestBlock", "", {"first"}, 10), answer("GetLatestBlock", "", {"second"}, 20)});
  const std::vector<std::string> request{""};
  AnswerBook::Reader reader(book);
  EXPECT_EQ(reader.next_whole(path_of("GetLatestBlock"), request)->body, wire({"first"}));
  EXPECT_EQ(reader.next_whole(path_of("GetLatestBlock"), request)->body, wire({"second"}));
  EXPECT_EQ(reader.next_whole(path_of("GetLatestBlock"), request)->body, wire({"second"}));
  AnswerBook::Reader other_connection(book);
  EXPECT_EQ(other_connection.next_whole(path_of("GetLatestBlock"), request)->body, wire({"first"}));
}

TEST(AnswerBook, AnswersAreCountedOverTheWholeCaptureInOrderOfTime) {
  http2::RecordedCapture capture;
  for (const ConnectionId id : {1, 2}) {
    http2::RecordedConnection connection;
    connection.id = id;
    for (const int64_t start_ns : {10, 30}) {
      http2::Call call;
      call.connection = id;
      call.path = path_of("GetBlock");
      call.start_ns = start_ns + static_cast<int64_t>(id);
      call.ended_by = http2::EndedBy::trailers;
      call.trailers_only = true;
      call.trailers = test::grpc_trailers(0, std::to_string(call.start_ns));
      http2::Frame end;
      end.type = http2::kData;
      end.flags = http2::kEndStream;
      call.frames.push_back(end);
      connection.calls.push_back(call);
    }
    capture.connections.push_back(connection);
  }
  const auto book = book_of(load_answers(std::move(capture)).answers);
  AnswerBook::Reader reader(book);
  for (const char* expected : {"11", "12", "31", "32"}) {
    const auto* script = reader.next_whole(path_of("GetBlock"), {});
    EXPECT_EQ(*http2::find_header(script->trailers, "grpc-message"), expected);
  }
}

TEST(AnswerBook, AnotherBodyOrAnotherSplitOfTheSameBytesIsAnotherRequest) {
  auto streamed = answer("GetTaddressBalanceStream", "", {"balance"});
  streamed.requests = {"ab", "c"};
  const auto book = book_of({streamed});
  AnswerBook::Reader reader(book);
  const auto path = path_of("GetTaddressBalanceStream");
  EXPECT_NE(reader.next_whole(path, std::vector<std::string>{"ab", "c"}), nullptr);
  EXPECT_EQ(reader.next_whole(path, std::vector<std::string>{"a", "bc"}), nullptr);
  EXPECT_EQ(reader.next_whole(path, std::vector<std::string>{"abc"}), nullptr);
  EXPECT_EQ(reader.next_whole(path, std::vector<std::string>{"ab"}), nullptr);
  EXPECT_EQ(reader.next_whole(path_of("GetTaddressBalance"), std::vector<std::string>{"ab", "c"}), nullptr);
}

TEST(AnswerBook, NamesTheMostSimilarRequestOfThatMethod) {
  const auto book = book_of({answer("GetBlock", block_id(100), {""}), answer("GetBlock", block_id(2000), {""}),
                             answer("GetTreeState", block_id(1995), {""})});
  EXPECT_EQ(book.nearest(path_of("GetBlock"), std::vector{block_id(1990)}), "{height: 2000}");
  EXPECT_EQ(book.nearest(path_of("GetBlock"), std::vector{block_id(90)}), "{height: 100}");
  EXPECT_EQ(book.nearest(path_of("GetTransaction"), std::vector{block_id(90)}), std::nullopt);
}

}  // namespace
}  // namespace ztape::replay
