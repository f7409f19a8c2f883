// A served connection in memory: what a client is sent, in which frames, in which writes, when.
#include <gtest/gtest.h>

#include "proto/method_table.h"
#include "replay/serve_server.h"
#include "replay/serve_session.h"
#include "tests/serve/client.h"
#include "tests/serve/recorded.h"
#include "tests/support/frames.h"

namespace ztape::replay {
namespace {

using test::answer;
using test::frame_types;
using test::MemoryClient;
using test::path_of;

constexpr int64_t kMillisecond = 1'000'000;

// A book, a session and a client that talk.
struct Served {
  explicit Served(std::vector<Answer> answers, ServeOptions with = {}, const std::vector<http2::Setting>& settings = {})
      : options(std::move(with)),
        book(std::move(answers), options.writes, options.delay == DelayMode::recorded),
        client(settings),
        session(book, options, counts, log) {
    client.exchange(session);
    client.writes.clear();
  }

  ServeOptions options;
  AnswerBook book;
  ServeCounts counts;
  std::vector<std::string> logged;
  ServeLog log = [this](const std::string& line) { logged.push_back(line); };
  MemoryClient client;
  ServeSession session;
};

std::vector<std::string> types_of(const std::vector<std::string>& writes) {
  std::vector<std::string> list;
  for (const auto& write : writes) list.push_back(frame_types(write));
  return list;
}

// The recorded client's bytes of a connection, read by read, answered; the calls that this makes.
std::vector<http2::Call> serve_recorded_client(const test::FixtureConnection& connection, const AnswerBook& book,
                                               const ServeOptions& options, ServeCounts& counts) {
  const ServeLog log = [](const std::string& line) { ADD_FAILURE() << line; };
  ServeSession session(book, options, counts, log);
  std::vector<test::Piece> crossed;
  const auto take_writes = [&](int64_t time_ns) {
    while (auto write = session.next_write({time_ns})) {
      crossed.push_back({Direction::server_to_client, std::move(*write), time_ns});
    }
  };
  for (auto& piece : test::pieces_of(connection)) {
    if (piece.direction != Direction::client_to_server) continue;
    session.receive({reinterpret_cast<const uint8_t*>(piece.bytes.data()), piece.bytes.size()}, {piece.time_ns});
    const auto time_ns = piece.time_ns;
    crossed.push_back(std::move(piece));
    take_writes(time_ns);
  }
  http2::CallBuilderOptions with_bodies;
  with_bodies.keep_bodies = true;
  return test::read_calls(crossed, with_bodies);
}

TEST(ServeSession, TheRecordedClientOfEveryFixtureIsAnsweredAsItWas) {
  for (const auto& name : test::fixture_names()) {
    for (const auto mode : {WriteMode::recorded, WriteMode::one, WriteMode::split}) {
      ServeOptions options;
      options.writes = mode;
      options.accept_send_transaction = true;
      const AnswerBook book(load_answers(test::recorded_fixture(name)).answers, mode, false);
      for (const auto& connection : test::load_fixture(name)) {
        ServeCounts counts;
        const auto served = serve_recorded_client(connection, book, options, counts);
        const auto recorded = test::calls_with_bodies(connection);
        ASSERT_EQ(served.size(), recorded.size());
        for (std::size_t i = 0; i < recorded.size(); ++i) {
          SCOPED_TRACE(name + " stream " + std::to_string(recorded[i].stream));
          ASSERT_EQ(served[i].responses.size(), recorded[i].responses.size());
          for (std::size_t k = 0; k < recorded[i].responses.size(); ++k) {
            ASSERT_EQ(served[i].responses[k].body, recorded[i].responses[k].body);
          }
          if (recorded[i].ended_by == http2::EndedBy::trailers) {
            EXPECT_EQ(test::summary_of(served[i], false), test::summary_of(recorded[i], false));
            EXPECT_EQ(served[i].response_headers, recorded[i].response_headers);
            EXPECT_EQ(served[i].trailers, recorded[i].trailers);
          } else {
            EXPECT_EQ(served[i].ended_by, http2::EndedBy::server_reset);
            EXPECT_EQ(served[i].reset_code, 8u);
          }
        }
      }
    }
  }
}

TEST(ServeSession, SplitWritesEveryFrameOfAnAnswerByItself) {
  ServeOptions options;
  options.writes = WriteMode::split;
  Served served({answer("GetBlockRange", "q", {"one", "two"})}, options);
  const auto stream = served.client.request(path_of("GetBlockRange"), {"q"});
  served.client.exchange(served.session);
  EXPECT_EQ(types_of(served.client.writes), (std::vector<std::string>{"HEADERS", "DATA", "DATA", "HEADERS"}));
  EXPECT_EQ(served.client.answers[stream].messages(), (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(served.client.answers[stream].ended);
}

TEST(ServeSession, OneWritesTheWholeAnswerAtOnce) {
  ServeOptions options;
  options.writes = WriteMode::one;
  Served served({answer("GetBlockRange", "q", {"one", "two"})}, options);
  served.client.request(path_of("GetBlockRange"), {"q"});
  served.client.exchange(served.session);
  EXPECT_EQ(types_of(served.client.writes), (std::vector<std::string>{"HEADERS DATA DATA HEADERS"}));
}

TEST(ServeSession, RecordedWritesTogetherWhatArrivedTogether) {
  auto made = answer("GetBlockRange", "q", {"one", "two", "three"});
  made.frame_ns = {2000, 4000, 5000};  // the first with the headers, the third with the trailers
  made.trailers_ns = 5000;
  Served served({made});
  served.client.request(path_of("GetBlockRange"), {"q"});
  served.client.exchange(served.session);
  EXPECT_EQ(types_of(served.client.writes), (std::vector<std::string>{"HEADERS DATA", "DATA", "DATA HEADERS"}));
}

TEST(ServeSession, AnswersOfSeveralStreamsDoNotMixWithinAWrite) {
  auto made = answer("GetBlock", "q", {"one"});
  made.frame_ns = {2000};
  made.trailers_ns = 2000;
  Served served({made});
  for (int i = 0; i < 3; ++i) served.client.request(path_of("GetBlock"), {"q"});
  served.client.exchange(served.session);
  EXPECT_EQ(types_of(served.client.writes), (std::vector<std::string>(3, "HEADERS DATA HEADERS")));
}

TEST(ServeSession, KeepsTheRecordedDataFrames) {
  auto made = answer("GetBlockRange", "q", {std::string(20, 'a'), std::string(20, 'b')});
  made.messages[0].pieces = {{0, 7}, {1, 18}};
  made.messages[1].pieces = {{1, 10}, {2, 0}, {3, 15}};  // the third frame was empty
  made.frame_ns = {3000, 4000, 5000, 6000};
  Served served({made});
  const auto stream = served.client.request(path_of("GetBlockRange"), {"q"});
  served.client.exchange(served.session);
  EXPECT_EQ(served.client.answers[stream].frames, (std::vector<std::size_t>{7, 28, 0, 15}));
  EXPECT_EQ(served.client.answers[stream].messages().size(), 2u);
}

TEST(ServeSession, FlowControlCutsFramesAndTheAnswerGoesOn) {
  const std::string large(100'000, 'x');
  Served served({answer("GetBlockRange", "q", {large, large})}, {}, {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1000}});
  const auto stream = served.client.request(path_of("GetBlockRange"), {"q"});
  served.client.exchange(served.session);
  EXPECT_EQ(served.client.answers[stream].messages(), (std::vector<std::string>{large, large}));
  EXPECT_GT(served.client.answers[stream].frames.size(), 100u);
  EXPECT_EQ(served.client.answers[stream].status(), "0");
}

TEST(ServeSession, SendsTheRecordedSettings) {
  ServeOptions options;
  options.settings = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 1}, {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 200}};
  const AnswerBook book({}, WriteMode::recorded, false);
  ServeCounts counts;
  const ServeLog log;
  ServeSession session(book, options, counts, log);
  MemoryClient client;
  client.exchange(session);
  // A server may not offer to push; the rest is as it was.
  EXPECT_TRUE(client.writes.at(0).starts_with(test::settings({{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 200}})));
}

TEST(ServeSession, WaitsForTheEndOfTheRequest) {
  auto made = answer("GetTaddressBalanceStream", "a", {"balance"});
  made.requests = {"a", "b"};
  made.request_ns = {500, 600};
  Served served({made});
  const auto stream = served.client.request(path_of("GetTaddressBalanceStream"), {"a"}, false);
  served.client.exchange(served.session);
  served.client.send_more(stream, "b");
  served.client.exchange(served.session);
  EXPECT_FALSE(served.client.answers.contains(stream));
  served.client.end(stream);
  served.client.exchange(served.session);
  EXPECT_EQ(served.client.answers[stream].messages(), (std::vector<std::string>{"balance"}));
}

TEST(ServeSession, AnInterleavedCallIsAnsweredMessageByMessage) {
  Answer made;
  made.path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
  made.interleaved = true;
  made.requests = {"q1", "q2"};
  made.request_ns = {100, 400};
  made.request_end_ns = 700;
  made.headers = test::grpc_response();
  made.headers_ns = 200;
  made.messages = {{"a1", {{0, 7}}}, {"a2", {{1, 7}}}};
  made.frame_ns = {300, 500};
  made.trailers = test::grpc_trailers(0);
  made.trailers_ns = 800;
  Served served({made});
  const auto stream = served.client.request(made.path, {"q1"}, false);
  auto& answered = served.client.answers[stream];
  served.client.exchange(served.session);
  EXPECT_EQ(answered.messages(), (std::vector<std::string>{"a1"}));
  served.client.send_more(stream, "another question than recorded");  // only the first one is looked up
  served.client.exchange(served.session);
  EXPECT_EQ(answered.messages(), (std::vector<std::string>{"a1", "a2"}));
  EXPECT_FALSE(answered.ended);
  served.client.end(stream);
  served.client.exchange(served.session);
  EXPECT_TRUE(answered.ended);
  EXPECT_EQ(answered.status(), "0");
}

TEST(ServeSession, AnUnknownRequestIsUnimplementedAndTheLogNamesTheNearest) {
  Served served({answer("GetBlock", std::string("\x08\x07", 2), {"x"})});
  const auto stream = served.client.request(path_of("GetBlock"), {std::string("\x08\x09", 2)});
  const auto other = served.client.request("/no.such.Service/Method", {"q"});
  served.client.exchange(served.session);
  EXPECT_EQ(served.client.answers[stream].status(), "12");
  EXPECT_EQ(served.client.answers[stream].message(), "not in the capture: GetBlock {height: 9}");
  EXPECT_EQ(served.client.answers[other].status(), "12");
  EXPECT_EQ(served.logged,
            (std::vector<std::string>{"not in the capture: GetBlock {height: 9}; the nearest recorded one: {height: 7}",
                                      "not in the capture: Method 1 bytes 71; the capture has no Method"}));
  EXPECT_EQ(served.counts.unknown_requests, 2u);
}

TEST(ServeSession, SendTransactionIsRefusedUnlessItIsAccepted) {
  const std::vector<Answer> recorded{answer("SendTransaction", "tx", {"sent"})};
  Served refusing(recorded);
  const auto stream = refusing.client.request(path_of("SendTransaction"), {"tx"});
  refusing.client.exchange(refusing.session);
  EXPECT_EQ(refusing.client.answers[stream].status(), "7");
  EXPECT_NE(refusing.client.answers[stream].message().find("--accept-send-transaction"), std::string::npos);
  EXPECT_EQ(refusing.counts.refused_requests, 1u);

  ServeOptions options;
  options.accept_send_transaction = true;
  Served accepting(recorded, options);
  const auto accepted = accepting.client.request(path_of("SendTransaction"), {"tx"});
  accepting.client.exchange(accepting.session);
  EXPECT_EQ(accepting.client.answers[accepted].messages(), (std::vector<std::string>{"sent"}));
}

TEST(ServeSession, AnUnfinishedAnswerEndsWithCancelAfterItsMessages) {
  auto made = answer("GetMempoolStream", "q", {"one", "two"});
  made.end = Answer::End::reset;
  made.reset_code = 8;
  made.trailers.clear();
  made.end_ns = 9000;
  Served served({made});
  const auto stream = served.client.request(path_of("GetMempoolStream"), {"q"});
  served.client.exchange(served.session);
  EXPECT_EQ(served.client.answers[stream].messages(), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(served.client.answers[stream].reset_code, 8);
  EXPECT_EQ(types_of(served.client.writes).back(), "RST_STREAM");
}

TEST(ServeSession, ResetComesAfterMessagesThatFlowControlHeldBack) {
  const std::string large(100'000, 'x');
  auto made = answer("GetMempoolStream", "q", {large});
  made.end = Answer::End::reset;
  made.reset_code = 2;
  made.trailers.clear();
  Served served({made}, {}, {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 500}});
  const auto stream = served.client.request(path_of("GetMempoolStream"), {"q"});
  served.client.exchange(served.session);
  EXPECT_EQ(served.client.answers[stream].messages(), (std::vector<std::string>{large}));
  EXPECT_EQ(served.client.answers[stream].reset_code, 2);
}

TEST(ServeSession, WithoutTrailersTheLastDataFrameEndsTheStream) {
  auto made = answer("GetBlock", "q", {"one"});
  made.trailers.clear();
  Served served({made});
  const auto stream = served.client.request(path_of("GetBlock"), {"q"});
  served.client.exchange(served.session);
  EXPECT_TRUE(served.client.answers[stream].ended);
  EXPECT_TRUE(served.client.answers[stream].trailers.empty());
  EXPECT_EQ(served.client.answers[stream].messages(), (std::vector<std::string>{"one"}));
}

TEST(ServeSession, RecordedDelaySendsEachWriteAtItsTimeAfterTheRequest) {
  auto made = answer("GetBlock", "q", {"one"});
  made.request_end_ns = made.request_ns[0] = 0;
  made.headers_ns = 10 * kMillisecond;
  made.frame_ns = {10 * kMillisecond};
  made.trailers_ns = 50 * kMillisecond;
  ServeOptions options;
  options.delay = DelayMode::recorded;
  Served served({made}, options);
  const int64_t asked = 1000 * kMillisecond;
  served.client.request(path_of("GetBlock"), {"q"});
  served.client.exchange(served.session, {asked});
  EXPECT_TRUE(served.client.writes.empty());
  EXPECT_EQ(served.session.next_due(), MonotonicTime{asked + 10 * kMillisecond});
  served.client.exchange(served.session, {asked + 10 * kMillisecond});
  EXPECT_EQ(types_of(served.client.writes), (std::vector<std::string>{"HEADERS DATA"}));
  EXPECT_EQ(served.session.next_due(), MonotonicTime{asked + 50 * kMillisecond});
  served.client.exchange(served.session, {asked + 50 * kMillisecond});
  EXPECT_EQ(types_of(served.client.writes), (std::vector<std::string>{"HEADERS DATA", "HEADERS"}));
  EXPECT_EQ(served.session.next_due(), std::nullopt);
}

TEST(ServeSession, AFixedDelayComesBeforeEachAnswer) {
  ServeOptions options;
  options.delay = DelayMode::fixed;
  options.delay_ns = 40 * kMillisecond;
  Served served({answer("GetBlock", "q", {"one"})}, options);
  const auto stream = served.client.request(path_of("GetBlock"), {"q"});
  served.client.exchange(served.session, {kMillisecond});
  EXPECT_EQ(served.session.next_due(), MonotonicTime{41 * kMillisecond});
  served.client.exchange(served.session, {41 * kMillisecond});
  EXPECT_TRUE(served.client.answers[stream].ended);
}

TEST(ServeSession, ACompressedRequestIsComparedDecoded) {
  // gzip of "q" (RFC 1952), as `printf q | gzip -n` makes it.
  const std::string gzipped("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x2b\x04\x00\x27\xae\x00\xf5\x01\x00\x00\x00", 21);
  Served served({answer("GetBlock", "q", {"one"})});
  test::HeaderEncoder encoder;
  auto fields = test::grpc_request(path_of("GetBlock"));
  fields.push_back({"grpc-encoding", "gzip"});
  const auto bytes = encoder.headers(1, fields, false) + test::data(1, test::message(gzipped, true), true);
  served.session.receive({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, {});
  while (served.session.next_write({})) {
  }
  EXPECT_EQ(served.logged, std::vector<std::string>{});
  EXPECT_EQ(served.counts.calls[path_of("GetBlock")], 1u);
}

TEST(ServeSession, ShutDownSaysGoaway) {
  Served served({});
  served.session.shut_down();
  served.client.exchange(served.session);
  EXPECT_TRUE(served.client.goaway);
  EXPECT_TRUE(served.session.finished());
}

}  // namespace
}  // namespace ztape::replay
