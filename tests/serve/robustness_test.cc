// A served connection against clients that break the protocol, go away, or want too much.
#include <gtest/gtest.h>

#include <random>

#include "replay/serve_session.h"
#include "tests/serve/client.h"
#include "tests/serve/recorded.h"
#include "tests/support/frames.h"

namespace ztape::replay {
namespace {

using test::answer;
using test::MemoryClient;
using test::path_of;

struct Server {
  Server() : book({answer("GetBlock", "q", {std::string(50'000, 'x')})}, WriteMode::recorded, false) {}

  bool receive(ServeSession& session, std::string_view bytes) {
    return session.receive({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, {});
  }
  std::string all_writes(ServeSession& session) {
    std::string bytes;
    while (auto write = session.next_write({})) bytes += *write;
    return bytes;
  }

  AnswerBook book;
  ServeOptions options;
  ServeCounts counts;
  ServeLog log = [](const std::string&) {};
};

TEST(ServeRobustness, AWrongPrefaceFinishesTheConnection) {
  Server server;
  ServeSession session(server.book, server.options, server.counts, server.log);
  EXPECT_FALSE(server.receive(session, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  server.all_writes(session);
  EXPECT_TRUE(session.finished());
}

TEST(ServeRobustness, AFrameThatBreaksTheProtocolGetsGoaway) {
  Server server;
  ServeSession session(server.book, server.options, server.counts, server.log);
  server.receive(session, std::string(http2::kClientPreface) + test::settings({}));
  server.receive(session, test::data(1, "on no stream", false));
  EXPECT_NE(test::frame_types(server.all_writes(session)).find("GOAWAY"), std::string::npos);
  EXPECT_TRUE(session.finished());
}

TEST(ServeRobustness, RandomBytesAfterThePrefaceNeverCrash) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Server server;
    ServeSession session(server.book, server.options, server.counts, server.log);
    server.receive(session, std::string(http2::kClientPreface) + test::settings({}));
    for (int i = 0; i < 50 && !session.finished(); ++i) {
      std::string payload(random() % 60, '\0');
      for (auto& c : payload) c = static_cast<char>(random());
      server.receive(session, test::frame(static_cast<uint8_t>(random() % 10), static_cast<uint8_t>(random()),
                                          random() % 8, payload));
      server.all_writes(session);
    }
  }
}

TEST(ServeRobustness, EveryRecordedClientByteFlippedNeverCrashes) {
  const auto connection = test::load_fixture("lightwalletd-grpcurl").front();
  const auto& bytes = connection.bytes[index(Direction::client_to_server)];
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    Server server;
    ServeSession session(server.book, server.options, server.counts, server.log);
    auto broken = bytes;
    broken[at] = static_cast<char>(broken[at] ^ 0x41);
    server.receive(session, broken);
    server.all_writes(session);
  }
}

TEST(ServeRobustness, AThousandStreamsAtOnceAreAllAnswered) {
  Server server;
  ServeSession session(server.book, server.options, server.counts, server.log);
  MemoryClient client;
  client.exchange(session);
  for (int i = 0; i < 1000; ++i) client.request(path_of("GetBlock"), {"q"});
  client.exchange(session);
  std::size_t ended = 0;
  for (const auto& [stream, answered] : client.answers) ended += answered.ended ? 1 : 0;
  EXPECT_EQ(ended, 1000u);
  EXPECT_EQ(server.counts.calls[path_of("GetBlock")], 1000u);
}

TEST(ServeRobustness, StreamsCancelledMidAnswerLeaveNothingBehind) {
  Server server;
  ServeSession session(server.book, server.options, server.counts, server.log);
  MemoryClient client({{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 100}});
  client.exchange(session);
  for (int i = 0; i < 50; ++i) {
    const auto stream = client.request(path_of("GetBlock"), {"q"});
    client.send_to(session);
    for (int k = 0; k < 3; ++k) {
      if (auto write = session.next_write({})) client.receive(*write);
    }
    client.cancel(stream);
    client.send_to(session);
    EXPECT_FALSE(client.answers[stream].ended);
  }
  const auto last = client.request(path_of("GetBlock"), {"q"});
  client.exchange(session);
  EXPECT_TRUE(client.answers[last].ended);
}

TEST(ServeRobustness, AClientThatNeverReadsCostsOneWindow) {
  Server server;
  ServeSession session(server.book, server.options, server.counts, server.log);
  test::HeaderEncoder encoder;
  server.receive(session, std::string(http2::kClientPreface) + test::settings({}));
  std::string requests;
  for (uint32_t stream = 1; stream < 200; stream += 2) {
    requests += encoder.headers(stream, test::grpc_request(path_of("GetBlock")), false);
    requests += test::data(stream, test::message("q"), true);
  }
  server.receive(session, requests);
  // 100 answers of 50,000 bytes are due; no WINDOW_UPDATE ever comes.
  EXPECT_LT(server.all_writes(session).size(), 65'535u + 20'000u);
}

TEST(ServeRobustness, ARequestTooLargeIsRefusedAndNotHeld) {
  Server server;
  ServeSession session(server.book, server.options, server.counts, server.log);
  MemoryClient client;
  client.exchange(session);
  const auto stream = client.request(path_of("GetBlock"), {std::string(kMaxRequestBytes + 1, 'q')});
  client.exchange(session);
  EXPECT_EQ(client.answers[stream].status(), "8");
  EXPECT_EQ(server.counts.bad_requests, 1u);
}

TEST(ServeRobustness, ARequestThatIsNoGrpcIsAnsweredWithAnError) {
  Server server;
  ServeSession session(server.book, server.options, server.counts, server.log);
  test::HeaderEncoder encoder;
  server.receive(session, std::string(http2::kClientPreface) + test::settings({}));
  server.receive(session, encoder.headers(1, test::grpc_request(path_of("GetBlock")), false) +
                              test::data(1, "<html>no gRPC here</html>", true));
  server.receive(session, encoder.headers(3, test::grpc_request(path_of("GetBlock")), false) +
                              test::data(3, test::message("q").substr(0, 4), true));
  server.all_writes(session);
  EXPECT_EQ(server.counts.bad_requests, 2u);
  EXPECT_FALSE(session.finished());
}

TEST(ServeRobustness, AHugeHeaderEndsTheStreamOrTheConnectionOnly) {
  Server server;
  ServeSession session(server.book, server.options, server.counts, server.log);
  server.receive(session, std::string(http2::kClientPreface) + test::settings({}));
  auto fields = test::grpc_request(path_of("GetBlock"));
  fields.push_back({"x-huge", std::string(200'000, 'h')});
  const auto block = test::HeaderEncoder().block(fields);
  std::string bytes;
  constexpr std::size_t kMaxFrame = 16'384;
  for (std::size_t at = 0; at < block.size(); at += kMaxFrame) {
    const bool last = at + kMaxFrame >= block.size();
    bytes += test::frame(at == 0 ? http2::kHeaders : http2::kContinuation, last ? http2::kEndHeaders : 0, 1,
                         block.substr(at, kMaxFrame));
  }
  server.receive(session, bytes);
  const auto types = test::frame_types(server.all_writes(session));
  EXPECT_TRUE(types.find("GOAWAY") != std::string::npos || types.find("RST_STREAM") != std::string::npos) << types;
}

TEST(ServeRobustness, AClientsGoawayLetsOpenAnswersEnd) {
  Server server;
  ServeSession session(server.book, server.options, server.counts, server.log);
  test::HeaderEncoder encoder;
  server.receive(session, std::string(http2::kClientPreface) + test::settings({}));
  server.receive(session, encoder.headers(1, test::grpc_request(path_of("GetBlock")), false) +
                              test::data(1, test::message("q"), true) + test::goaway(0, 0, ""));
  EXPECT_NE(test::frame_types(server.all_writes(session)).find("DATA HEADERS"), std::string::npos);
}

}  // namespace
}  // namespace ztape::replay
