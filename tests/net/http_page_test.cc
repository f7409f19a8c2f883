#include "net/http_page.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "net/background.h"
#include "tests/support/sockets.h"

namespace ztape::net {
namespace {

using test::Socket;

// The page on a loop in a thread of its own; the test plays its peers.
class HttpPageTest : public testing::Test {
 protected:
  void serve(HttpPageOptions options) {
    std::promise<std::string> listening;
    thread_ = std::thread([this, &listening, options] {
      Loop loop;
      Wakeup stop(loop, [&] { loop.stop(); });
      stop_ = &stop;
      const auto on_asked = [&loop, this](HttpPage::Answer answer) {
        ++asked_;
        auto text = std::make_shared<std::string>();
        run_beside(loop, [text, this] { *text = page_; }, [text, answer] { answer(*text); });
      };
      const auto address = resolve(*parse_url("127.0.0.1:0"), true).value().front();
      auto page = HttpPage::listen(loop, address, on_asked, options);
      listening.set_value(page ? (*page)->local_text() : "");
      loop.run();
    });
    address_ = listening.get_future().get();
  }
  void TearDown() override {
    if (auto* stop = stop_.load()) stop->wake();
    if (thread_.joinable()) thread_.join();
  }
  std::string ask(const std::string& request) {
    auto socket = Socket::connect(address_);
    socket.send(request);
    return socket.receive_all();
  }

  std::string page_ = "ztape_x 1\n";
  std::atomic<int> asked_ = 0;
  std::atomic<Wakeup*> stop_ = nullptr;
  std::thread thread_;
  std::string address_;
};

constexpr const char* kGet = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

TEST_F(HttpPageTest, GetHasThePageAndHeadItsHeadOnly) {
  serve({.content_type = "text/plain; version=0.0.4"});
  const std::string head =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: 10\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(ask(kGet), head + page_);
  EXPECT_EQ(ask("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), head + page_);
  EXPECT_EQ(ask("HEAD /metrics HTTP/1.1\r\n\r\n"), head);
  // A request that comes byte by byte.
  auto slow = Socket::connect(address_);
  slow.set_nodelay();
  for (const char c : std::string(kGet)) slow.send({&c, 1});
  EXPECT_EQ(slow.receive_all(), head + page_);
  // Its peer has already ended its side.
  auto half = Socket::connect(address_);
  half.send(kGet);
  half.shutdown_write();
  EXPECT_EQ(half.receive_all(), head + page_);
}

TEST_F(HttpPageTest, WhatIsNotARequestForItIsRefused) {
  serve({.max_request_bytes = 1000});
  EXPECT_TRUE(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(ask("GET /metrics/ HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
  EXPECT_NE(ask("POST /metrics HTTP/1.1\r\n\r\n").find("\r\nAllow: GET, HEAD\r\n"), std::string::npos);
  for (const char* garbage : {"GET /metrics\r\n\r\n", "GET metrics HTTP/1.1\r\n\r\n", " / HTTP/1.1\r\n\r\n", "\r\n\r\n",
                              "GET /metrics HTTP/2.0\r\n\r\n", "GET /metrics HTTP/1.1x\r\n\r\n"}) {
    EXPECT_TRUE(ask(garbage).starts_with("HTTP/1.1 400 ")) << garbage;
  }
  EXPECT_TRUE(ask("GET /metrics HTTP/1.1\r\nX: " + std::string(1100, 'x')).starts_with("HTTP/1.1 431 "));
  EXPECT_EQ(asked_, 0);
}

TEST_F(HttpPageTest, ManyAndSlowPeersAreBoundedAndOthersComeAfterThem) {
  page_.assign(8 * 1024 * 1024, 'x');  // more than the sockets' buffers hold
  serve({.max_connections = 2, .patience_ns = 300'000'000});
  std::vector<Socket> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(Socket::connect(address_));
  auto lazy = Socket::connect(address_);  // asks and does not read
  lazy.set_receive_buffer(4096);
  lazy.send(kGet);
  EXPECT_EQ(ask(kGet).size(), page_.size() + ask("HEAD /metrics HTTP/1.1\r\n\r\n").size());
  for (auto& socket : silent) {
    std::string error;
    socket.receive_all(&error);
    EXPECT_EQ(error, "ECONNRESET");
  }
}

TEST_F(HttpPageTest, AnAnswerThatComesWhenItsPeerHasGoneIsDropped) {
  serve({});
  for (int i = 0; i < 20; ++i) {
    auto gone = Socket::connect(address_);
    gone.send(kGet);
    if (i % 2 == 0) gone.reset();
  }
  EXPECT_TRUE(ask(kGet).starts_with("HTTP/1.1 200 "));
}

}  // namespace
}  // namespace ztape::net
