// `ztape proxy` with peers that die, hang, dribble or mean harm: what one end did, the other sees; nothing delivered is
// missing in the capture; nobody else notices.
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>

#include "tests/support/frames.h"
#include "tests/support/proxy_process.h"
#include "tests/support/recorded_bytes.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

constexpr std::size_t kMostFrameBytes = (1 << 24) - 1;  // RFC 9113, section 4.2

std::string pattern(std::size_t bytes, uint32_t seed = 1) {
  std::string text(bytes, '\0');
  uint32_t state = seed * 2654435761u + 1;
  for (auto& byte : text) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<char>(state >> 24);
  }
  return text;
}

std::string client_begin(HeaderEncoder& encoder) {
  return std::string(http2::kClientPreface) + settings({{5, kMostFrameBytes}})  // SETTINGS_MAX_FRAME_SIZE
         + encoder.headers(1, grpc_request("/a.B/C"), false) + data(1, message("question"), true);
}

std::string server_begin(HeaderEncoder& encoder) {
  return settings({}) + encoder.headers(1, grpc_response(), false);
}

// Until the other end's kernel has all that was sent.
void wait_until_arrived(const Socket& socket) {
  const auto deadline = Clock::now() + kPatience;
  int waiting = 1;
  while (waiting > 0 && Clock::now() < deadline) {
    ASSERT_EQ(ioctl(socket.fd(), SIOCOUTQ, &waiting), 0);
    std::this_thread::yield();
  }
  ASSERT_EQ(waiting, 0);
}

// Sends until nobody has taken anything for a while; how much that was.
std::size_t send_until_stuck(Socket& socket, std::string_view bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    pollfd writable{.fd = socket.fd(), .events = POLLOUT, .revents = 0};
    if (poll(&writable, 1, 300) == 0) break;
    sent += socket.send_without_waiting(bytes.substr(sent, 65536));
  }
  return sent;
}

class ProxyFaults : public testing::Test {
 protected:
  void connect() {
    client_ = Socket::connect(proxy_.address());
    server_ = listener_.accept();
    client_.set_nodelay();
    server_.set_nodelay();
  }

  // One sends, the other gets it.
  static void pass(Socket& from, Socket& to, const std::string& bytes) {
    from.send(bytes);
    ASSERT_TRUE(to.receive(bytes.size()) == bytes);
  }

  // A call whose answer has begun.
  void begin_call() {
    connect();
    pass(client_, server_, client_begin(client_encoder_));
    pass(server_, client_, server_begin(server_encoder_));
  }

  void expect_that_others_are_served() {
    auto client = Socket::connect(proxy_.address());
    auto server = listener_.accept();
    for (int i = 0; i < 100; ++i) {
      pass(client, server, "ping");
      pass(server, client, "pong");
    }
  }

  void expect_bounded(uint64_t before, uint64_t most) {
    if (!kSanitized) {
      EXPECT_LT(proxy_.process().resident_bytes(), before + most);
    }
  }

  RecordedTraffic stop() {
    EXPECT_EQ(proxy_.stop(), 0) << proxy_.process().stderr_text();
    EXPECT_EQ(run({ztape(), "verify", "-r", capture_}).status, 0);
    return read_traffic(capture_);
  }

  TemporaryDirectory folder_;
  std::string capture_ = folder_.file("a.ztape");
  ListeningSocket listener_;
  // Nothing here is about a slow disk: a gap on a busy machine would say nothing.
  ProxyProcess proxy_{listener_.address(), capture_, {"--when-disk-is-slow", "hold"}};
  Socket client_, server_;
  HeaderEncoder client_encoder_, server_encoder_;
};

TEST_F(ProxyFaults, AnIndexerThatDiesMidStreamIsRecordedUpToItsLastByte) {
  begin_call();
  const auto answer = data(1, message(pattern(100'000)), false);
  const auto half = answer.substr(0, 60'000);
  server_.send(half);
  server_.close();
  std::string error;
  EXPECT_TRUE(client_.receive_all(&error) == half);
  EXPECT_EQ(error, "");
  client_.close();
  expect_that_others_are_served();
  const auto traffic = stop();
  const auto& connection = traffic.connections.at(1);
  EXPECT_TRUE(connection.bytes[1].ends_with(half));
  EXPECT_EQ(connection.close.first_side(), capture::UPSTREAM);
  EXPECT_EQ(connection.close.server_to_client().end(), capture::FIN);
  EXPECT_EQ(connection.frames[1].count(http2::kData), 0u) << "the frame never became whole";
}

TEST_F(ProxyFaults, AWalletThatDiesMidStreamEndsTheIndexersConnection) {
  begin_call();
  const auto answer = data(1, message(pattern(8 << 20)), false);
  const std::size_t sent = send_until_stuck(server_, answer);
  EXPECT_TRUE(client_.receive(1000) == answer.substr(0, 1000));
  client_.close();  // with bytes unread: an RST
  std::string error;
  EXPECT_EQ(server_.receive_all(&error), "");
  EXPECT_EQ(error, "ECONNRESET");
  expect_that_others_are_served();
  const auto traffic = stop();
  const auto& connection = traffic.connections.at(1);
  const auto recorded = connection.bytes[1].substr(server_begin(*std::make_unique<HeaderEncoder>()).size());
  EXPECT_GE(recorded.size(), 1000u);
  EXPECT_LE(recorded.size(), sent);
  EXPECT_TRUE(recorded == answer.substr(0, recorded.size()));
  EXPECT_EQ(connection.close.first_side(), capture::DOWNSTREAM);
  EXPECT_EQ(connection.close.client_to_server().end(), capture::RESET);
}

TEST_F(ProxyFaults, WhatWasQueuedIsDeliveredBeforeAResetFromEitherSide) {
  const auto all = pattern(1 << 20);
  for (const bool from_server : {true, false}) {
    SCOPED_TRACE(from_server ? "from the server" : "from the client");
    connect();
    Socket& from = from_server ? server_ : client_;
    Socket& to = from_server ? client_ : server_;
    from.send(all);
    wait_until_arrived(from);
    from.reset();
    std::string error;
    EXPECT_TRUE(to.receive_all(&error) == all);
    EXPECT_EQ(error, "ECONNRESET");
  }
  const auto traffic = stop();
  EXPECT_TRUE(traffic.connections.at(1).bytes[1] == all);
  EXPECT_EQ(traffic.connections.at(1).close.server_to_client().end(), capture::RESET);
  EXPECT_TRUE(traffic.connections.at(2).bytes[0] == all);
  EXPECT_EQ(traffic.connections.at(2).close.client_to_server().end(), capture::RESET);
}

TEST_F(ProxyFaults, AWalletThatResetsBeforeItIsTakenIsRecordedWithItsAddress) {
  proxy_.process().signal(SIGSTOP);
  client_ = Socket::connect(proxy_.address());
  const auto wallet = client_.local_text();
  client_.send("x");
  client_.reset();
  proxy_.process().signal(SIGCONT);
  server_ = listener_.accept();
  std::string error;
  EXPECT_EQ(server_.receive_all(&error), "x");
  EXPECT_EQ(error, "ECONNRESET");
  const auto traffic = stop();
  EXPECT_EQ(traffic.connections.at(1).open.downstream_peer(), wallet);
  EXPECT_EQ(traffic.connections.at(1).bytes[0], "x");
}

TEST_F(ProxyFaults, AHangupDoesNotEndTheRecording) {
  connect();
  pass(client_, server_, "before");
  proxy_.process().signal(SIGHUP);
  proxy_.process().wait_for_stderr("SIGHUP: there is no certificate to read again");
  pass(client_, server_, "after");
  EXPECT_EQ(stop().connections.at(1).bytes[0], "beforeafter");
}

TEST_F(ProxyFaults, AHalfCloseIsHeldForSecondsWhileTheOtherWayFlows) {
  for (const bool client_ends : {true, false}) {
    SCOPED_TRACE(client_ends ? "the client ends first" : "the server ends first");
    connect();
    Socket& ended = client_ends ? client_ : server_;
    Socket& talker = client_ends ? server_ : client_;
    pass(ended, talker, "last words");
    ended.shutdown_write();
    EXPECT_EQ(talker.receive_some(), "");
    for (const auto until = Clock::now() + std::chrono::seconds(3); Clock::now() < until;) {
      pass(talker, ended, "still here ");
      std::this_thread::sleep_for(milliseconds(50));  // how long it is held is the point
    }
    talker.shutdown_write();
    EXPECT_EQ(ended.receive_some(), "");
  }
  const auto traffic = stop();
  for (const uint64_t id : {1, 2}) {
    const auto& connection = traffic.connections.at(id);
    const auto& one = connection.bytes[id - 1];
    const auto& other = connection.bytes[2 - id];
    EXPECT_EQ(one, "last words");
    EXPECT_GT(other.size(), 0u);
    EXPECT_EQ(other.size() % 11, 0u);
    EXPECT_EQ(connection.close.client_to_server().end(), capture::FIN);
    EXPECT_EQ(connection.close.server_to_client().end(), capture::FIN);
  }
}

TEST_F(ProxyFaults, PeersThatSendOneByteAtATimeAreReadAllTheSame) {
  connect();
  const auto question = client_begin(client_encoder_);
  const auto answer = server_begin(server_encoder_) + data(1, message(pattern(500)), false) +
                      server_encoder_.headers(1, grpc_trailers(0), true);
  for (const char byte : question) pass(client_, server_, std::string(1, byte));
  for (const char byte : answer) pass(server_, client_, std::string(1, byte));
  const auto traffic = stop();
  const auto& connection = traffic.connections.at(1);
  EXPECT_TRUE(connection.bytes[0] == question);
  EXPECT_TRUE(connection.bytes[1] == answer);
  EXPECT_EQ(connection.header_blocks, 3u);
  EXPECT_EQ(connection.frames[0].at(http2::kData), 1u);
  EXPECT_EQ(connection.frames[1].at(http2::kData), 1u);
  const auto calls = run({ztape(), "show", "-r", capture_, "--calls", "--json"});
  EXPECT_NE(calls.out.find("\"grpc_status\":0"), std::string::npos) << calls.out << calls.err;
}

TEST_F(ProxyFaults, APeerThatNeverReadsTakesBoundedMemoryAndHoldsNobodyElse) {
  connect();
  const auto before = proxy_.process().resident_bytes();
  const auto all = pattern(64 << 20);
  const std::size_t sent = send_until_stuck(server_, all);
  EXPECT_LT(sent, all.size());
  expect_that_others_are_served();
  expect_bounded(before, 32 << 20);
  client_.reset();
  std::string error;
  EXPECT_EQ(server_.receive_all(&error), "");
  EXPECT_EQ(error, "ECONNRESET");
  const auto traffic = stop();
  const auto& recorded = traffic.connections.at(1).bytes[1];
  EXPECT_LE(recorded.size(), sent);
  EXPECT_TRUE(recorded == all.substr(0, recorded.size()));
}

TEST_F(ProxyFaults, AFrameOf16MiBCrossesAndIsOneFrame) {
  begin_call();
  const auto before = proxy_.process().resident_bytes();
  const auto answer = data(1, pattern(kMostFrameBytes), false) + server_encoder_.headers(1, grpc_trailers(0), true);
  std::thread server([&] { server_.send(answer); });
  const auto got = client_.receive(answer.size());
  server.join();
  EXPECT_TRUE(got == answer);
  expect_bounded(before, 96 << 20);  // the queue's 64 MiB may hold it
  const auto traffic = stop();
  const auto& connection = traffic.connections.at(1);
  EXPECT_TRUE(connection.bytes[1].ends_with(answer));
  EXPECT_EQ(connection.frames[1].at(http2::kData), 1u);
  EXPECT_EQ(connection.header_blocks, 3u);
}

// A field of 4,000 bytes goes into the table, then one byte each repeats it 16,000 times: 16 KB that mean 64 MB.
TEST_F(ProxyFaults, AnHpackBombCostsTheHeadersOfItsDirectionAndNothingElse) {
  begin_call();
  const auto before = proxy_.process().resident_bytes();
  std::string first;  // a literal with incremental indexing, of a length as in RFC 7541, section 5.1
  first += '\x40';
  first += "\x01x\x7f";
  first += static_cast<char>(0x80 | ((3900 - 127) & 0x7f));
  first += static_cast<char>((3900 - 127) >> 7);
  first += std::string(3900, 'a');
  pass(client_, server_, frame(http2::kHeaders, http2::kEndHeaders, 3, first));
  for (uint32_t stream = 5; stream < 5 + 2 * 50; stream += 2) {
    pass(client_, server_, frame(http2::kHeaders, http2::kEndHeaders, stream, std::string(16'000, '\xbe')));
  }
  expect_bounded(before, 32 << 20);
  pass(server_, client_, server_encoder_.headers(1, grpc_trailers(0), true));
  expect_that_others_are_served();
  const auto traffic = stop();
  const auto& connection = traffic.connections.at(1);
  EXPECT_EQ(connection.frames[0].at(http2::kHeaders), 52u) << "the frames are read on";
  EXPECT_EQ(connection.header_blocks, 4u) << "the call, the field, and the server's two";
  ASSERT_FALSE(traffic.states.empty());  // the others' are later: theirs is no HTTP/2
  EXPECT_EQ(traffic.states[0].connection(), 1u);
  EXPECT_TRUE(traffic.states[0].client_to_server().readable());
  EXPECT_FALSE(traffic.states[0].client_to_server().hpack_known());
  EXPECT_NE(traffic.states[0].client_to_server().unreadable_reason(), "");
}

TEST_F(ProxyFaults, AHeaderBlockWithoutEndTakesBoundedMemory) {
  begin_call();
  const auto before = proxy_.process().resident_bytes();
  const std::string piece(16'000, '\x80');
  pass(client_, server_, frame(http2::kHeaders, 0, 3, piece));
  const auto more = frame(http2::kContinuation, 0, 3, piece);
  for (int i = 0; i < 2'000; ++i) pass(client_, server_, more);  // 32 MB
  expect_bounded(before, 80 << 20);                              // the queue's 64 MiB may hold it
  pass(server_, client_, server_encoder_.headers(1, grpc_trailers(0), true));
  const auto traffic = stop();
  const auto& connection = traffic.connections.at(1);
  EXPECT_TRUE(connection.bytes[0].ends_with(more));
  EXPECT_EQ(connection.header_blocks, 3u);
}

}  // namespace
}  // namespace ztape::test
