// Recorded calls as answers, and their scripts: the bytes, where DATA frames cut them, what goes out in one write.
#include "replay/answer.h"

#include <gtest/gtest.h>

#include "replay/answer_script.h"
#include "tests/serve/recorded.h"
#include "tests/support/frames.h"

namespace ztape::replay {
namespace {

using test::answer;

std::vector<std::size_t> frame_lengths(const AnswerScript& script) {
  std::vector<std::size_t> lengths;
  for (const auto& step : script.steps) {
    if (step.kind == AnswerStep::Kind::frame) lengths.push_back(step.end - step.begin);
  }
  return lengths;
}

std::vector<std::size_t> unit_sizes(const AnswerScript& script) {
  std::vector<std::size_t> sizes;
  for (const auto& unit : script.units) sizes.push_back(unit.last - unit.first);
  return sizes;
}

TEST(Answer, ScriptsOfEveryFixtureHaveTheRecordedFramesAndMessages) {
  for (const auto& name : test::fixture_names()) {
    for (const auto& connection : test::load_fixture(name)) {
      for (auto& call : test::calls_with_bodies(connection)) {
        SCOPED_TRACE(name + " stream " + std::to_string(call.stream));
        std::string body;
        for (const auto& message : call.responses) body += test::message(message.body);
        std::vector<std::size_t> lengths;
        for (const auto& frame : call.frames) {
          const bool of_answer = frame.direction == Direction::server_to_client && frame.type == http2::kData;
          if (of_answer && frame.length > 0) lengths.push_back(frame.length);
        }
        const auto tail = call.response_tail_bytes;
        const bool finished = call.ended_by == http2::EndedBy::trailers;
        const auto trailers = call.trailers;

        Answer made;
        ASSERT_TRUE(answer_of(std::move(call), made));
        const auto script = make_script(std::move(made), WriteMode::recorded, false);
        EXPECT_EQ(script.body, body);
        if (tail == 0) {
          EXPECT_EQ(frame_lengths(script), lengths);
        }
        EXPECT_EQ(script.steps.back().kind, finished ? AnswerStep::Kind::trailers : AnswerStep::Kind::reset);
        if (finished) {
          EXPECT_EQ(script.trailers, trailers);
        } else {
          EXPECT_EQ(script.reset_code, 8u);
        }
      }
    }
  }
}

TEST(Answer, StepsOfOneRecordedReadAreOneUnit) {
  auto made = answer("GetBlock", "", {"one", "two", "three"});
  made.frame_ns = {2000, 2000, 5000};  // the first two came with the headers
  made.trailers_ns = 5000;
  EXPECT_EQ(unit_sizes(make_script(Answer(made), WriteMode::recorded, false)), (std::vector<std::size_t>{3, 2}));
  EXPECT_EQ(unit_sizes(make_script(Answer(made), WriteMode::split, false)), (std::vector<std::size_t>{1, 1, 1, 1, 1}));
  EXPECT_EQ(unit_sizes(make_script(Answer(made), WriteMode::one, false)), (std::vector<std::size_t>{5}));
  const auto timed = make_script(Answer(made), WriteMode::one, true);
  EXPECT_EQ(unit_sizes(timed), (std::vector<std::size_t>{3, 2}));
  EXPECT_EQ(timed.units[0].delay_ns, 1000);  // after the request's end at 1000
  EXPECT_EQ(timed.units[1].delay_ns, 4000);
}

TEST(Answer, MessagesThatShareADataFrameStillDo) {
  auto made = answer("GetBlockRange", "", {"one", "two"});
  made.messages[0].pieces = {{0, 8}};
  made.messages[1].pieces = {{0, 3}, {1, 5}};
  const auto script = make_script(Answer(made), WriteMode::split, false);
  EXPECT_EQ(frame_lengths(script), (std::vector<std::size_t>{11, 5}));
}

TEST(Answer, AMessageThatGrewOrShrankKeepsItsFirstCuts) {
  AnswerMessage message{"0123456789", {{0, 4}, {1, 11}}};
  message.body = "0123456789abc";
  fit_pieces(message);
  EXPECT_EQ(message.pieces[0].length, 4u);
  EXPECT_EQ(message.pieces[1].length, 14u);
  message.body = "";
  fit_pieces(message);
  EXPECT_EQ(message.pieces[0].length, 4u);
  EXPECT_EQ(message.pieces[1].length, 1u);
}

TEST(Answer, ACancelledRequestIsNoAnswer) {
  http2::RecordedCapture capture;
  http2::RecordedConnection connection;
  connection.id = 1;
  const std::vector<test::Piece> pieces{
      {Direction::client_to_server,
       std::string(http2::kClientPreface) + test::settings({}) +
           test::HeaderEncoder().headers(1, test::grpc_request(test::path_of("GetBlock")), false) +
           test::rst_stream(1, 8),
       10}};
  http2::CallBuilderOptions options;
  options.keep_bodies = options.keep_frames = true;
  connection.calls = test::read_calls(pieces, options);
  ASSERT_EQ(connection.calls.size(), 1u);
  capture.connections.push_back(connection);
  const auto loaded = load_answers(std::move(capture));
  EXPECT_TRUE(loaded.answers.empty());
  EXPECT_EQ(loaded.unfinished_requests, 1u);
}

TEST(Answer, ADamagedCaptureSaysWhatItLacks) {
  http2::RecordedCapture capture;
  capture.damage.push_back({ErrorCode::torn, 100, 10, 3, 0, "the file ends within block 3"});
  http2::RecordedConnection connection;
  connection.id = 7;
  connection.gap_bytes = 12;
  capture.connections.push_back(connection);
  const auto loaded = load_answers(std::move(capture));
  EXPECT_EQ(loaded.incomplete,
            (std::vector<std::string>{"the file ends within block 3", "connection 7: 12 bytes were not recorded"}));
}

}  // namespace
}  // namespace ztape::replay
