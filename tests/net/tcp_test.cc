#include "net/tcp.h"

#include <gtest/gtest.h>

#include <deque>

#include "tests/net/connection_pair.h"

namespace ztape::net {
namespace {

class Tcp : public ConnectionPair, public testing::WithParamInterface<const char*> {
 protected:
  void connect(const std::string& address = "127.0.0.1:0") {
    connect_pair(address, client_, server_);
    client_->set_handler(&client_events_);
    server_->set_handler(&server_events_);
  }

  std::unique_ptr<TcpConnection> client_, server_;
};

TEST_P(Tcp, BytesCrossBothWaysAndBothEndsNameTheSameAddresses) {
  connect(GetParam());
  EXPECT_EQ(client_->peer_text(), listener_->local_text());
  EXPECT_EQ(client_->local_text(), server_->peer_text());
  EXPECT_NE(listener_->local_text(), GetParam());
  client_->start_reading();
  server_->start_reading();
  client_->write("ping");
  run_until([&] { return server_events_.bytes == "ping"; });
  const Slice pieces[] = {Slice::copy_of("po"), Slice::copy_of("ng")};
  server_->write(pieces);
  run_until([&] { return client_events_.bytes == "pong"; });
}

INSTANTIATE_TEST_SUITE_P(BothFamilies, Tcp, testing::Values("127.0.0.1:0", "[::1]:0"),
                         [](const auto& row) { return row.index == 0 ? "IPv4" : "IPv6"; });

TEST_F(Tcp, AHalfCloseIsAnEndForThePeerAndTheOtherDirectionGoesOn) {
  connect();
  client_->start_reading();
  server_->start_reading();
  client_->write("last");
  client_->half_close();
  run_until([&] { return server_events_.eof_count == 1; });
  EXPECT_EQ(server_events_.bytes, "last");
  server_->write("still here");
  run_until([&] { return client_events_.bytes == "still here"; });
  server_->half_close();
  run_until([&] { return client_events_.eof_count == 1; });
  EXPECT_EQ(client_events_.error + server_events_.error, "");
}

TEST_F(Tcp, AResetIsTold) {
  connect();
  client_->start_reading();
  server_->reset();
  run_until([&] { return !client_events_.error.empty(); });
  EXPECT_EQ(client_events_.error, "ECONNRESET");
  EXPECT_EQ(client_events_.eof_count, 0);
}

TEST_F(Tcp, AResetIsNeverTakenForAnEndWhenAWriteMeetsItFirst) {
  connect();
  server_->reset();
  client_->write("into the reset");  // may take the socket's error away from the read
  client_->write("again");
  client_->start_reading();
  run_until([&] { return !client_events_.error.empty() || client_events_.eof_count > 0; });
  EXPECT_EQ(client_events_.error, "ECONNRESET");
  EXPECT_EQ(client_events_.eof_count, 0);
}

TEST_F(Tcp, BytesBeforeAResetAreReadBeforeItIsTold) {
  connect();
  server_->write("answer");
  TcpConnection::reset_after_drain(std::move(server_));
  run_until([&] {
    const auto bytes = client_->tcp_info();
    return bytes && bytes->bytes_received == 6;
  });
  client_->write("too late");
  client_->write("too late");
  client_->start_reading();
  run_until([&] { return !client_events_.error.empty(); });
  EXPECT_EQ(client_events_.bytes, "answer");
  EXPECT_EQ(client_events_.error, "ECONNRESET");
}

TEST_F(Tcp, AResetThatComesWithTheLastBytesIsNotTakenForAnEnd) {
  connect();
  server_->write("answer");
  run_until([&] {
    const auto bytes = client_->tcp_info();
    return bytes && bytes->bytes_received == 6;
  });
  server_->reset();
  client_->start_reading();
  run_until([&] { return !client_events_.error.empty() || client_events_.eof_count > 0; });
  EXPECT_EQ(client_events_.bytes, "answer");
  EXPECT_EQ(client_events_.error, "ECONNRESET");
  EXPECT_EQ(client_events_.eof_count, 0);
}

TEST_F(Tcp, ResetAfterDrainDeliversEveryByteFirst) {
  connect();
  const std::string all(32 << 20, 'z');
  server_->write(all);
  EXPECT_GT(server_->queued_bytes(), 0u);
  TcpConnection::reset_after_drain(std::move(server_));
  client_->start_reading();
  run_until([&] { return !client_events_.error.empty() || client_events_.eof_count > 0; });
  EXPECT_EQ(client_events_.bytes.size(), all.size());
  EXPECT_EQ(client_events_.error, "ECONNRESET");
}

TEST_F(Tcp, CloseAfterDrainDeliversEveryByteAndAnEnd) {
  connect();
  const std::string all(32 << 20, 'z');
  server_->write(all);
  server_->half_close();
  TcpConnection::close_after_drain(std::move(server_));
  client_->start_reading();
  run_until([&] { return !client_events_.error.empty() || client_events_.eof_count > 0; });
  EXPECT_EQ(client_events_.bytes.size(), all.size());
  EXPECT_EQ(client_events_.error, "");
}

TEST_F(Tcp, AWriteToAPeerThatDoesNotReadIsQueuedAndDrains) {
  connect();
  std::string all(32 << 20, '\0');
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i * 2654435761u >> 13);
  server_->write(all);
  EXPECT_GT(server_->queued_bytes(), 0u);
  EXPECT_EQ(server_events_.drained_count, 0);
  client_->start_reading();
  run_until([&] { return client_events_.bytes.size() == all.size(); });
  EXPECT_EQ(client_events_.bytes, all);
  run_until([&] { return server_events_.drained_count == 1; });
  EXPECT_EQ(server_->queued_bytes(), 0u);
}

TEST_F(Tcp, ManyPiecesOfOneWriteArriveInOrder) {
  connect();
  client_->start_reading();
  std::vector<Slice> pieces;
  std::string expected;
  for (int i = 0; i < 700; ++i) {
    const std::string piece(static_cast<std::size_t>(i * 37), static_cast<char>('a' + i % 26));
    pieces.push_back(Slice::copy_of(piece));
    expected += piece;
  }
  server_->write(pieces);
  pieces.clear();
  run_until([&] { return client_events_.bytes.size() >= expected.size(); });
  EXPECT_EQ(client_events_.bytes, expected);
}

TEST_F(Tcp, APausedReaderGetsNothingUntilItStartsAgain) {
  connect();
  client_->start_reading();
  client_->pause_reading();
  server_->write("held");
  run_until([&] {
    const auto info = client_->tcp_info();
    return info && info->bytes_received == 4;
  });
  for (int i = 0; i < 10; ++i) loop_.poll();
  EXPECT_EQ(client_events_.bytes, "");
  client_->start_reading();
  client_->start_reading();
  run_until([&] { return client_events_.bytes == "held"; });
}

TEST_F(Tcp, AConnectionMayBeDestroyedInsideItsOwnCallbacks) {
  connect();
  server_->start_reading();
  server_events_.on_event = [&] { server_.reset(); };
  client_->write("die");
  run_until([&] { return !server_; });
  client_->start_reading();
  client_events_.on_event = [&] { client_.reset(); };
  run_until([&] { return !client_; });
  EXPECT_EQ(client_events_.eof_count, 1);  // all was read at the server, so its close is a FIN
}

TEST_F(Tcp, AClosedConnectionMayBeKeptAndIsSilent) {
  connect();
  client_->start_reading();
  server_->start_reading();
  client_->close();
  run_until([&] { return server_events_.eof_count == 1; });
  server_->reset();
  for (int i = 0; i < 10; ++i) loop_.poll();  // the handles are gone now
  for (auto* closed : {client_.get(), server_.get()}) {
    closed->start_reading();
    closed->pause_reading();
    closed->write("nothing");
    closed->half_close();
    closed->close();
    closed->reset();
    EXPECT_EQ(closed->queued_bytes(), 0u);
    EXPECT_EQ(closed->fd(), -1);
    EXPECT_EQ(closed->local_text(), "");
    EXPECT_FALSE(closed->tcp_info());
    EXPECT_FALSE(closed->set_options({}));
  }
  TcpConnection::close_after_drain(std::move(client_));
  TcpConnection::reset_after_drain(std::move(server_));
  EXPECT_EQ(client_events_.error + server_events_.error, "");
}

TEST_F(Tcp, AListenerMayBeDestroyedInsideItsCallback) {
  std::unique_ptr<TcpConnection> accepted;
  auto listening =
      TcpListener::listen(loop_, address_of("127.0.0.1:0"), [&](std::unique_ptr<TcpConnection> connection) {
        accepted = std::move(connection);
        listener_.reset();
      });
  listener_ = std::move(*listening);
  Connector connector(loop_, {address_of(listener_->local_text())}, {}, kDeadlineNs, [&](auto result) {
    ASSERT_TRUE(result);
    client_ = std::move(*result);
  });
  run_until([&] { return accepted && client_; });
}

TEST_F(Tcp, ARefusedConnectionIsAnErrorWithTheAddress) {
  connect();
  const auto free_address = listener_->local_text();
  listener_.reset();
  loop_.poll();
  std::optional<Error> error;
  std::unique_ptr<Connector> connector;
  connector = std::make_unique<Connector>(loop_, std::vector{address_of(free_address)}, SocketOptions{}, kDeadlineNs,
                                          [&](auto result) {
                                            ASSERT_FALSE(result);
                                            error = result.error();
                                            connector.reset();
                                          });
  run_until([&] { return error.has_value(); });
  EXPECT_EQ(error->code, ErrorCode::unreachable);
  EXPECT_EQ(error->line(), free_address + ": connection refused");
  EXPECT_FALSE(connector);
}

TEST_F(Tcp, TheNextAddressIsTriedWhenOneRefuses) {
  connect();
  const auto refusing = listener_->local_text();
  listener_.reset();
  client_.reset();
  server_.reset();
  loop_.poll();
  auto listening = TcpListener::listen(loop_, address_of("[::1]:0"), [](std::unique_ptr<TcpConnection>) {});
  ASSERT_TRUE(listening);
  Connector connector(loop_, {address_of(refusing), address_of((*listening)->local_text())}, {}, kDeadlineNs,
                      [&](auto result) {
                        ASSERT_TRUE(result);
                        client_ = std::move(*result);
                      });
  run_until([&] { return client_ != nullptr; });
  EXPECT_EQ(client_->peer_text(), (*listening)->local_text());
}

TEST_F(Tcp, ADestroyedConnectorNeverCallsBack) {
  auto listening = TcpListener::listen(loop_, address_of("127.0.0.1:0"), [](std::unique_ptr<TcpConnection>) {});
  {
    Connector connector(loop_, {address_of((*listening)->local_text())}, {}, kDeadlineNs,
                        [](auto) { FAIL() << "called back"; });
  }
  for (int i = 0; i < 10; ++i) loop_.poll();
}

TEST_F(Tcp, APortInUseIsAnErrorWithTheAddress) {
  connect();
  const auto again = TcpListener::listen(loop_, address_of(listener_->local_text()), [](auto) {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::address);
  EXPECT_EQ(again.error().line(), listener_->local_text() + ": address already in use");
}

TEST_F(Tcp, OptionsAndFactsOfTheSocketAreThere) {
  connect();
  ASSERT_TRUE(client_->set_options({.nodelay = true, .quickack_every_read = true}));
  EXPECT_FALSE(client_->congestion_control().empty());
  client_->start_reading();
  server_->write("12345");
  run_until([&] { return client_events_.bytes.size() == 5; });
  const auto info = client_->tcp_info();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->bytes_received, 5u);
  EXPECT_GT(info->snd_mss, 0u);
}

TEST_F(Tcp, TheLoopEndsCleanWithAConnectionThatStillDrains) {
  connect();
  server_->write(std::string(32 << 20, 'z'));
  TcpConnection::reset_after_drain(std::move(server_));
  // The fixture's loop goes last and expects uv_loop_close to give 0.
}

TEST_F(Tcp, BytesGivenBackComeAgainFirstWithTheirTimeAndNotFromInsideStartReading) {
  connect();
  client_->write("PROXY ...GET");
  server_->start_reading();
  run_until([&] { return server_events_.bytes == "PROXY ...GET"; });
  server_->pause_reading();
  struct Times final : Connection::Handler {
    std::vector<std::pair<std::string, MonotonicTime>> reads;
    void on_read(Slice slice, MonotonicTime time) override {
      reads.emplace_back(std::string(reinterpret_cast<const char*>(slice.data()), slice.size()), time);
    }
    void on_eof(MonotonicTime) override {}
    void on_error(const std::string&, MonotonicTime) override {}
  } next;
  server_->set_handler(&next);
  server_->unread(Slice::copy_of("GET"), MonotonicTime{4711});
  client_->write(" / HTTP");
  server_->start_reading();
  EXPECT_TRUE(next.reads.empty());
  server_->pause_reading();
  for (int i = 0; i < 5; ++i) loop_.poll();
  EXPECT_TRUE(next.reads.empty());
  server_->start_reading();
  run_until([&] { return next.reads.size() == 2; });
  EXPECT_EQ(next.reads[0], std::pair(std::string("GET"), MonotonicTime{4711}));
  EXPECT_EQ(next.reads[1].first, " / HTTP");
}

TEST_F(Tcp, AConnectionMayBeDestroyedFromTheReadOfBytesGivenBack) {
  connect();
  server_events_.on_event = [&] { server_.reset(); };
  server_->unread(Slice::copy_of("x"), {});
  server_->start_reading();
  run_until([&] { return !server_; });
  EXPECT_EQ(server_events_.bytes, "x");
}

}  // namespace
}  // namespace ztape::net
