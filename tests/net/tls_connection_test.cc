#include "net/tls_connection.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/net/connection_pair.h"
#include "tests/net/tls_fixtures.h"

namespace ztape::net {
namespace {

const TlsClientHandshake kToLocalhost{.server_name = "localhost", .alpn = {"h2"}};
const TlsServerHandshake kH2{.alpn = {"h2", "http/1.1"}, .wait_for_answer = false};

class Tls : public ConnectionPair {
 protected:
  // The two sockets, without TLS.
  void connect_sockets() { connect_pair("127.0.0.1:0", client_socket_, server_socket_); }

  void accept(const TlsServerHandshake& handshake = kH2, TlsConnection::OnHello on_hello = nullptr,
              int64_t timeout_ns = kHandshakeTimeoutNs) {
    server_ = TlsConnection::accept(
        std::move(server_socket_), server_context(), handshake,
        [&](Result<void> result) { server_result_ = result ? "ok" : result.error().line(); }, std::move(on_hello),
        timeout_ns);
    server_->set_handler(&server_events_);
  }

  void connect(std::shared_ptr<TlsContext> context = client_context(),
               const TlsClientHandshake& handshake = kToLocalhost) {
    client_ =
        TlsConnection::connect(std::move(client_socket_), std::move(context), handshake,
                               [&](Result<void> result) { client_result_ = result ? "ok" : result.error().line(); });
    client_->set_handler(&client_events_);
  }

  void shake_hands() {
    connect_sockets();
    accept();
    connect();
    run_until([&] { return !server_result_.empty() && !client_result_.empty(); });
    ASSERT_EQ(client_result_ + server_result_, "okok");
  }

  std::unique_ptr<TcpConnection> client_socket_, server_socket_;
  std::unique_ptr<TlsConnection> client_, server_;
  std::string client_result_, server_result_;
};

TEST_F(Tls, BytesCrossBothWaysWithTheTimeOfTheirRead) {
  shake_hands();
  ASSERT_TRUE(client_->tls());
  EXPECT_EQ(client_->tls()->alpn, "h2");
  EXPECT_EQ(server_->tls()->server_name, "localhost");
  EXPECT_EQ(client_->peer_text(), server_->local_text());
  EXPECT_TRUE(server_->tcp_info());
  client_->start_reading();
  server_->start_reading();
  const auto before = monotonic_now();
  client_->write("ping");
  run_until([&] { return server_events_.bytes == "ping"; });
  EXPECT_GE(server_events_.times.at(0), before);
  EXPECT_LE(server_events_.times.at(0), monotonic_now());
  server_->write("pong");
  run_until([&] { return client_events_.bytes == "pong"; });
}

// A client that was answered on an earlier connection, or in TLS 1.3 any, sends its first bytes with its last flight.
TEST_F(Tls, WhatCameWithTheHandshakesLastFlightIsReadWhenReadingBegins) {
  connect_sockets();
  accept();
  connect();
  run_until([&] {
    if (client_result_ == "ok" && client_events_.drained_count == 0 &&
        std::exchange(client_events_.drained_count, 1) == 0) {
      client_->write("first");
    }
    return client_result_ == "ok" && server_result_ == "ok";
  });
  for (int i = 0; i < 20; ++i) loop_.poll();
  EXPECT_EQ(server_events_.bytes, "");
  server_->start_reading();
  EXPECT_EQ(server_events_.bytes, "") << "never from inside start_reading()";
  run_until([&] { return server_events_.bytes == "first"; });
}

TEST_F(Tls, ALargeTransferToASlowReaderIsQueuedAsCiphertextAndArrivesWhole) {
  shake_hands();
  std::mt19937 random(7);
  std::string sent(24 * 1024 * 1024, '\0');
  for (auto& byte : sent) byte = static_cast<char>(random());
  client_->write(sent);
  EXPECT_GT(client_->queued_bytes(), 8U * 1024 * 1024);
  // A reader that pauses after every piece.
  server_events_.on_event = [&] { server_->pause_reading(); };
  std::size_t seen = 0;
  run_until([&] {
    if (server_events_.bytes.size() > seen) {
      seen = server_events_.bytes.size();
      loop_.poll();
      EXPECT_EQ(server_events_.bytes.size(), seen) << "paused";
    }
    server_->start_reading();
    return server_events_.bytes.size() == sent.size();
  });
  EXPECT_TRUE(server_events_.bytes == sent);
  EXPECT_GT(server_events_.times.size(), 24U);
  run_until([&] { return client_events_.drained_count > 0; });
  EXPECT_EQ(client_->queued_bytes(), 0U);
}

TEST_F(Tls, AHalfCloseIsACloseNotifyAndTheOtherDirectionGoesOn) {
  shake_hands();
  client_->start_reading();
  server_->start_reading();
  client_->write("last");
  client_->half_close();
  run_until([&] { return server_events_.eof_count == 1; });
  EXPECT_EQ(server_events_.bytes, "last");
  EXPECT_FALSE(server_->truncated());
  server_->write("still here");
  run_until([&] { return client_events_.bytes == "still here"; });
  server_->half_close();
  run_until([&] { return client_events_.eof_count == 1; });
  EXPECT_FALSE(client_->truncated());
  EXPECT_EQ(client_events_.error + server_events_.error, "");
}

TEST_F(Tls, AnEndWithoutCloseNotifyIsToldApart) {
  shake_hands();
  server_->start_reading();
  client_->write("cut");
  client_->half_close_truncated();
  run_until([&] { return server_events_.eof_count == 1; });
  EXPECT_EQ(server_events_.bytes, "cut");
  EXPECT_TRUE(server_->truncated());
}

TEST_F(Tls, AResetIsTold) {
  shake_hands();
  client_->start_reading();
  server_->reset();
  run_until([&] { return !client_events_.error.empty(); });
  EXPECT_EQ(client_events_.error, "ECONNRESET");
}

TEST_F(Tls, CloseAfterDrainDeliversEverythingAndACloseNotify) {
  shake_hands();
  const std::string sent(8 * 1024 * 1024, 'z');
  server_->write(sent);
  Connection::close_after_drain(std::move(server_));
  client_->start_reading();
  run_until([&] { return client_events_.eof_count == 1; });
  EXPECT_EQ(client_events_.bytes.size(), sent.size());
  EXPECT_FALSE(client_->truncated());
}

TEST_F(Tls, ResetAfterDrainDeliversEverythingThenResets) {
  shake_hands();
  const std::string sent(8 * 1024 * 1024, 'z');
  server_->write(sent);
  Connection::reset_after_drain(std::move(server_));
  client_->start_reading();
  run_until([&] { return !client_events_.error.empty(); });
  EXPECT_EQ(client_events_.bytes.size(), sent.size());
  EXPECT_EQ(client_events_.error, "ECONNRESET");
  EXPECT_EQ(client_events_.eof_count, 0);
}

TEST_F(Tls, AConnectionMayBeDestroyedFromItsOwnCallbacks) {
  shake_hands();
  server_events_.on_event = [&] { server_.reset(); };
  server_->start_reading();
  client_->write("x");
  run_until([&] { return !server_; });
  client_events_.on_event = [&] { client_.reset(); };
  client_->start_reading();
  run_until([&] { return !client_; });
}

TEST_F(Tls, AConnectionMayBeDestroyedFromItsHandshakesCallback) {
  connect_sockets();
  std::unique_ptr<TlsConnection> doomed;
  doomed =
      TlsConnection::accept(std::move(server_socket_), server_context(), kH2, [&](Result<void>) { doomed.reset(); });
  connect();
  run_until([&] { return !doomed; });
}

TEST_F(Tls, AFailureIsToldAtBothEndsAndThePeerGetsTheAlert) {
  connect_sockets();
  accept();
  connect(client_context({.ca = TlsFiles::get().other_ca.certificate, .certificate = "", .key = ""}));
  const auto server_peer = server_->peer_text(), client_peer = client_->peer_text();
  run_until([&] { return !client_result_.empty(); });
  EXPECT_EQ(client_result_,
            client_peer + ": TLS: the certificate does not verify: signed by a CA that is not trusted here");
  Connection::close_after_drain(std::move(client_));
  run_until([&] { return !server_result_.empty(); });
  EXPECT_EQ(server_result_,
            server_peer + ": TLS: the wallet does not accept this side's certificate (alert: unknown CA)");
}

TEST_F(Tls, APeerThatSaysNothingIsGivenUpAfterTheTimeout) {
  connect_sockets();
  accept(kH2, nullptr, 1'000'000);
  const auto peer = server_->peer_text();
  run_until([&] { return !server_result_.empty(); });
  EXPECT_EQ(server_result_, peer + ": TLS: no TLS handshake within 0 s");
}

TEST_F(Tls, APeerThatLeavesInTheHandshakeIsToldFromOneThatSaidNothing) {
  connect_sockets();
  accept();
  client_socket_->half_close();
  run_until([&] { return !server_result_.empty(); });
  EXPECT_TRUE(server_result_.ends_with("TLS: closed without a handshake")) << server_result_;
  server_result_.clear();
  server_socket_.reset();
  client_socket_.reset();
  connect_sockets();
  accept();
  client_socket_->write(std::string("\x16\x03\x01\x02\x00", 5));
  client_socket_->half_close();
  run_until([&] { return !server_result_.empty(); });
  EXPECT_TRUE(server_result_.ends_with("TLS: closed in the middle of the handshake")) << server_result_;
}

TEST_F(Tls, TheServersAnswerMayComeLaterAndItsTimeoutDoesNotRunMeanwhile) {
  connect_sockets();
  std::vector<std::string> offered;
  accept(
      TlsServerHandshake{.alpn = {}, .wait_for_answer = true},
      [&](const TlsClientHello& hello) { offered = hello.alpn; }, 300'000'000);
  connect();
  run_until([&] { return !offered.empty(); });
  EXPECT_EQ(offered, std::vector<std::string>{"h2"});
  const auto begin = monotonic_now();
  run_until([&] { return monotonic_now() - begin > 400'000'000; });
  EXPECT_EQ(server_result_ + client_result_, "");
  server_->answer("h2");
  EXPECT_EQ(server_result_, "");
  run_until([&] { return !server_result_.empty() && !client_result_.empty(); });
  EXPECT_EQ(server_result_ + client_result_, "okok");
  EXPECT_EQ(client_->tls()->alpn, "h2");
}

TEST_F(Tls, AClientThatLeavesWhileTheAnswerIsAwaitedIsNoticed) {
  connect_sockets();
  bool hello = false;
  accept(TlsServerHandshake{.alpn = {}, .wait_for_answer = true}, [&](const TlsClientHello&) { hello = true; });
  connect();
  run_until([&] { return hello; });
  client_->reset();
  run_until([&] { return !server_result_.empty(); });
  EXPECT_TRUE(server_result_.ends_with("TLS: ECONNRESET in the handshake")) << server_result_;
}

TEST_F(Tls, BytesReadBeforeTheHandshakeMayBeGivenBackToIt) {
  connect_sockets();
  connect();
  server_socket_->set_handler(&server_events_);
  server_socket_->start_reading();
  run_until([&] { return server_events_.bytes.size() > 100; });
  server_socket_->pause_reading();
  server_socket_->unread(Slice::copy_of(server_events_.bytes), monotonic_now());
  accept();
  run_until([&] { return !server_result_.empty() && !client_result_.empty(); });
  EXPECT_EQ(server_result_ + client_result_, "okok");
}

TEST_F(Tls, ManyConnectionsAreOpenedAndClosedOnOneContext) {
  for (int i = 0; i < 50; ++i) {
    server_result_.clear();
    client_result_.clear();
    server_events_ = {};
    shake_hands();
    server_->start_reading();
    client_->write("hello");
    run_until([&] { return server_events_.bytes == "hello"; });
    client_.reset();
    server_.reset();
  }
}

}  // namespace
}  // namespace ztape::net
