// Both ends of a TCP connection on one loop, and what they were told.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/listener.h"
#include "net/tcp.h"

namespace ztape::net {

inline constexpr int64_t kSecondNs = 1'000'000'000;
inline constexpr int64_t kDeadlineNs = 60 * kSecondNs;

// Keeps what a connection told it.
struct Recorder final : Connection::Handler {
  std::string bytes;
  int eof_count = 0;
  int drained_count = 0;
  std::string error;
  std::vector<MonotonicTime> times;
  std::function<void()> on_event;

  void tell() {
    if (on_event) on_event();
  }
  void on_read(Slice slice, MonotonicTime time) override {
    bytes.append(reinterpret_cast<const char*>(slice.data()), slice.size());
    times.push_back(time);
    tell();
  }
  void on_eof(MonotonicTime) override {
    ++eof_count;
    tell();
  }
  void on_error(const std::string& system_error, MonotonicTime) override {
    error = system_error;
    tell();
  }
  void on_drained() override {
    ++drained_count;
    tell();
  }
};

inline SocketAddress address_of(const std::string& text) {
  return resolve(*parse_url(text))->front();
}

class ConnectionPair : public testing::Test {
 protected:
  // Through a listener at that address, which stays.
  void connect_pair(const std::string& address, std::unique_ptr<TcpConnection>& client,
                    std::unique_ptr<TcpConnection>& server) {
    auto listening = TcpListener::listen(
        loop_, address_of(address), [&](std::unique_ptr<TcpConnection> accepted) { server = std::move(accepted); });
    ASSERT_TRUE(listening) << listening.error().line();
    listener_ = std::move(*listening);
    Connector connector(loop_, {address_of(listener_->local_text())}, {}, kDeadlineNs,
                        [&](Result<std::unique_ptr<TcpConnection>> result) {
                          ASSERT_TRUE(result) << result.error().line();
                          client = std::move(*result);
                        });
    run_until([&] { return client && server; });
  }

  void run_until(const std::function<bool()>& done) {
    const auto begin = monotonic_now();
    while (!done()) {
      loop_.poll();
      ASSERT_LT(monotonic_now() - begin, kDeadlineNs) << "the expected event did not come";
    }
  }

  Loop loop_;
  Recorder client_events_, server_events_;
  std::unique_ptr<TcpListener> listener_;
};

}  // namespace ztape::net
