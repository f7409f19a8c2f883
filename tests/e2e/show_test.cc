// `ztape show` of what real programs sent through `ztape proxy`, and of a capture that is still being written.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/support/frames.h"
#include "tests/support/proxy_process.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << text;
}

std::string head_of(Socket& peer) {
  std::string head;
  while (!head.ends_with("\r\n\r\n")) head += peer.receive(1);
  return head;
}

std::string answer(const std::string& status, const std::string& type, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nContent-Type: " + type + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

class Show : public testing::Test {
 protected:
  void start(const std::vector<std::string>& more = {}) {
    proxy_ = std::make_unique<ProxyProcess>(server_.address(), capture_, more);
  }
  void stop(int status = 0) { EXPECT_EQ(proxy_->stop(), status) << proxy_->process().stderr_text(); }
  [[nodiscard]] std::string url(const std::string& path) const { return "http://" + proxy_->address() + path; }

  [[nodiscard]] Finished show(std::vector<std::string> words) const {
    words.insert(words.begin(), {ztape(), "show", "-r", capture_});
    return run(words);
  }

  // One request and its answer over HTTP/1.1.
  void exchange(Socket& client, Socket& server, const std::string& path) {
    client.send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    head_of(server);
    const auto page = answer("200 OK", "text/plain", "ok");
    server.send(page);
    EXPECT_EQ(client.receive(page.size()), page);
  }

  TemporaryDirectory folder_;
  std::string capture_ = folder_.file("a.ztape");
  ListeningSocket server_;
  std::unique_ptr<ProxyProcess> proxy_;
};

// A server that takes the upgrade; `client` is a program that asks for it.
void serve_upgrade(ListeningSocket& listener) {
  auto peer = listener.accept();
  expect_has(head_of(peer), "h2c");
  HeaderEncoder encoder;
  peer.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + settings({}) +
            encoder.headers(1, {{":status", "200"}, {"content-type", "text/plain"}}, false) +
            data(1, "upgraded", true));
  peer.receive_all();
}

TEST_F(Show, ReadsTheFramesBehindAnUpgradeThatRealClientsAskFor) {
  start();
  for (const std::vector<std::string>& program :
       {std::vector<std::string>{"curl", "-s", "--http2"}, {"nghttp", "-u"}}) {
    auto words = program;
    words.push_back(url("/up"));
    ChildProcess client(words);
    serve_upgrade(server_);
    EXPECT_EQ(client.wait(), 0) << client.stderr_text();
    EXPECT_EQ(client.stdout_text(), "upgraded");
  }
  stop();
  const auto rows = json_lines(show({"--calls", "--json"}).out);
  ASSERT_EQ(rows.size(), 2U);
  for (const auto& row : rows) {
    EXPECT_EQ(row["stream"], 1);
    EXPECT_EQ(row["method"], "/up");
    EXPECT_EQ(row["http_version"], "2");
    EXPECT_EQ(row["http_status"], 200);
    EXPECT_EQ(row["response_bytes"], 8);
    EXPECT_EQ(row["ended_by"], "trailers");
  }
  expect_has(rows[0]["user_agent"], "curl/");
  expect_has(rows[1]["user_agent"], "nghttp2/");
  expect_has(show({"--frames"}).out, "SETTINGS");
  expect_has(show({}).out, "HTTP/1.1, upgraded to HTTP/2 (h2c)");
}

TEST_F(Show, NamesJsonRpcAndAnHtmlPageOverHttp1) {
  start();
  std::thread server([this] {
    auto peer = server_.accept();
    for (int i = 0; i < 15; ++i) {
      const auto head = head_of(peer);
      const auto at = head.find("Content-Length: ");
      ASSERT_NE(at, std::string::npos) << head;
      peer.receive(std::stoul(head.substr(at + 16)));
      peer.send(answer("200 OK", "application/json", "{\"result\":1}"));
    }
    auto browser = server_.accept();
    head_of(browser);
    browser.send(answer("502 Bad Gateway", "text/html; charset=utf-8", "<html>\x1b[31mBad Gateway</html>"));
    browser.receive_all();
  });
  const auto colon = proxy_->address().rfind(':');
  const std::string script = R"(
import http.client, json
c = http.client.HTTPConnection('127.0.0.1', )" +
                             proxy_->address().substr(colon + 1) +
                             R"()
for m in ['getblockchaininfo'] * 12 + ['getblock'] * 3:
    c.request('POST', '/', json.dumps({'jsonrpc': '1.0', 'id': 1, 'method': m, 'params': []}))
    assert c.getresponse().read() == b'{"result":1}'
)";
  const auto python = run({"/usr/bin/python3", "-c", script});
  EXPECT_EQ(python.status, 0) << python.err;
  EXPECT_EQ(run({"curl", "-s", "--http1.1", url("/page")}).status, 0);
  server.join();
  stop();

  const auto page = show({});
  expect_has(page.out,
             "HTTP/1.1 POST /, JSON-RPC getblockchaininfo ×12, getblock ×3; answered 200 application/json ×15");
  expect_has(page.out, "HTTP/1.1 GET /page; answered 502 text/html");
  expect_has(page.out, "Lost: nothing.");
  const auto calls = json_lines(show({"--calls", "--json", "--method", "getblock"}).out);
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0]["json_rpc"], nlohmann::json::array({"getblock"}));
  EXPECT_EQ(calls[0]["http_method"], "POST");
  EXPECT_EQ(calls[0]["protocol"], "http");
  EXPECT_EQ(calls[0]["http_version"], "1.1");
  EXPECT_GT(calls[0]["end_ns"], calls[0]["start_ns"]);
  const auto messages = show({"--messages", "--connection", "2"});
  expect_has(messages.out, "2/1  GET /page  HTTP 502 text/html");
  expect_has(messages.out, "    < <html>\\x1b[31mBad Gateway</html>");
  const auto groups = nlohmann::json::parse(show({"--by", "status,method", "--json"}).out);
  EXPECT_EQ(groups[0]["method"], "getblockchaininfo");
  EXPECT_EQ(groups[0]["status"], "HTTP 200 application/json");
  EXPECT_EQ(groups[0]["calls"], 12);
  EXPECT_EQ(groups[2]["errors"], 1);
}

TEST_F(Show, NamesTlsToAPlaintextPortAndWhatIsNotHttp) {
  start();
  std::thread server([this] {
    for (int i = 0; i < 3; ++i) {
      auto peer = server_.accept();
      peer.receive(6);
      peer.close();
    }
  });
  const auto port = proxy_->address().substr(proxy_->address().rfind(':'));
  EXPECT_NE(run({"curl", "-sk", "https://localhost" + port + "/"}).status, 0);
  for (const std::string& bytes :
       {std::string("\x00\x01\x02\x1b[31m", 8), std::string("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n")}) {
    auto client = Socket::connect(proxy_->address());
    client.send(bytes);
    std::string error;
    client.receive_all(&error);
  }
  server.join();
  proxy_->stop();
  const auto page = show({});
  expect_has(page.out, "TLS handshake bytes, SNI localhost: the wallet speaks TLS to a plaintext port");
  expect_has(page.out, "not HTTP: first bytes 00 01 02 1b 5b 33 31 6d");
  expect_has(page.out, "--proxy-protocol");
  EXPECT_EQ(page.out.find('\x1b'), std::string::npos);
}

TEST_F(Show, KeepsHopsApart) {
  const ListeningSocket second;
  ChildProcess proxy({ztape(), "proxy", "--route", "127.0.0.1:0=http://" + server_.address(), "--route",
                      "127.0.0.1:0=http://" + second.address(), "-w", capture_});
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto line = proxy.line(i);
    const auto at = line.find("127.0.0.1:");
    addresses.push_back(line.substr(at, line.find_first_of(", ", at) - at));
  }
  auto client = Socket::connect(addresses[0]);
  const auto wallet = client.local_text();
  auto peer = server_.accept();
  exchange(client, peer, "/");
  auto other = Socket::connect(addresses[1]);
  other.close();
  client.close();
  peer.receive_all();
  peer.close();
  proxy.signal(SIGINT);
  proxy.wait();
  const auto page = show({}).out;
  expect_has(page, "Route " + addresses[0] + " -> http://" + server_.address() + ": 1 connection, 1 call\n");
  expect_has(page, "Route " + addresses[1] + " -> http://" + second.address() + ": 1 connection, 0 calls\n");
  const auto row = json_lines(show({"--calls", "--json"}).out).at(0);
  EXPECT_EQ(row["downstream_peer"], wallet);
  EXPECT_EQ(row["downstream_local"], addresses[0]);
  EXPECT_EQ(row["upstream_url"], "http://" + server_.address());
  EXPECT_NE(row["upstream_local"], "");
}

class Following : public Show {
 protected:
  void SetUp() override {
    start();
    client_ = Socket::connect(proxy_->address());
    peer_ = server_.accept();
  }
  [[nodiscard]] std::unique_ptr<ChildProcess> follow(const std::vector<std::string>& more) const {
    std::vector<std::string> words{ztape(), "show", "-r", capture_, "--follow"};
    words.insert(words.end(), more.begin(), more.end());
    return std::make_unique<ChildProcess>(words);
  }
  Socket client_, peer_;
};

TEST_F(Following, EachCallIsPrintedOnceAsItEndsUpToTheTrailer) {
  exchange(client_, peer_, "/before");
  const auto calls = follow({"--json"});
  const auto messages = follow({"--messages", "--method", "GET /second"});
  EXPECT_EQ(nlohmann::json::parse(calls->line(0))["method"], "/before");
  exchange(client_, peer_, "/first");
  EXPECT_EQ(nlohmann::json::parse(calls->line(1))["method"], "/first");
  exchange(client_, peer_, "/second");
  EXPECT_EQ(nlohmann::json::parse(calls->line(2))["method"], "/second");
  EXPECT_NE(messages->line(0).find("1/3  GET /second"), std::string::npos);
  client_.close();
  peer_.close();
  stop();
  EXPECT_EQ(calls->wait(), 0) << calls->stderr_text();
  EXPECT_EQ(messages->wait(), 0);
  EXPECT_EQ(json_lines(calls->stdout_text()).size(), 3U);
  EXPECT_EQ(calls->stderr_text(), "");
}

TEST_F(Following, FramesOfHttp2ComeToo) {
  const auto frames = follow({"--frames", "--json"});
  HeaderEncoder encoder;
  client_.send(std::string(http2::kClientPreface) + settings({}));
  peer_.receive(http2::kClientPreface.size() + 9);
  EXPECT_EQ(nlohmann::json::parse(frames->line(0))["type"], "SETTINGS");
  client_.send(encoder.headers(1, grpc_request("/a/B"), true));
  EXPECT_EQ(nlohmann::json::parse(frames->line(1))["type"], "HEADERS");
}

TEST_F(Following, ACancelledCallIsToldThoughItsStreamMayLinger) {
  const auto calls = follow({"--json"});
  HeaderEncoder encoder;
  client_.send(std::string(http2::kClientPreface) + settings({}) + encoder.headers(1, grpc_request("/a/B"), true));
  client_.send(rst_stream(1, 8));
  const auto row = nlohmann::json::parse(calls->line(0));
  EXPECT_EQ(row["ended_by"], "client_reset");
}

TEST_F(Following, EndsWith3WhenTheRecorderWasKilled) {
  exchange(client_, peer_, "/before");
  const auto calls = follow({});
  calls->line(1);  // below the head
  proxy_->process().signal(SIGKILL);
  proxy_->process().wait();
  EXPECT_EQ(calls->wait(), 3);
  expect_has(calls->stderr_text(), "ends without a trailer: whoever wrote it did not finish");
}

TEST_F(Following, EndsWithItsReaderOrBySignalWhileTheRecordingGoesOn) {
  exchange(client_, peer_, "/before");
  const auto calls = follow({"--json"});
  calls->line(0);
  calls->signal(SIGINT);
  EXPECT_EQ(calls->wait(), 0);
  const auto head = run({"/bin/sh", "-c", "'" + ztape() + "' show --follow --json -r '" + capture_ + "' | head -1"});
  EXPECT_EQ(json_lines(head.out).size(), 1U);
}

TEST_F(Show, FollowsAPipe) {
  ASSERT_EQ(mkfifo(capture_.c_str(), 0600), 0);
  ChildProcess calls({ztape(), "show", "-r", capture_, "--follow", "--json"});
  start({"--force"});
  auto client = Socket::connect(proxy_->address());
  auto peer = server_.accept();
  exchange(client, peer, "/first");
  EXPECT_EQ(nlohmann::json::parse(calls.line(0))["method"], "/first");
  client.close();
  peer.close();
  stop();
  EXPECT_EQ(calls.wait(), 0) << calls.stderr_text();
  EXPECT_EQ(json_lines(calls.stdout_text()).size(), 1U);
}

TEST(ShowInput, ThatNeverEndsIsAClearErrorWithinBoundedMemory) {
  for (const char* words : {"-r /dev/zero", "-r - </dev/zero", "-r - --follow </dev/zero"}) {
    const auto shown = run({"/bin/sh", "-c", "ulimit -v 600000; exec '" + ztape() + "' show " + words});
    EXPECT_EQ(shown.status, 2) << words;
    expect_has(shown.err, "is not a capture: nothing of one is in its first 80 MiB");
    EXPECT_EQ(std::ranges::count(shown.err, '\n'), 1) << shown.err;
  }
}

TEST(ShowUsage, WhatDoesNotGoTogetherIsSaid) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--calls", "--frames"}, "--calls and --frames do not go together"},
      {{"--by", "method", "--frames"}, "--frames and --by do not go together"},
      {{"--by", "colour"}, "--by: 'colour' is not known: method, user-agent or status"},
      {{"--by", "method,"}, "--by: '' is not known"},
      {{"--by", "method", "--follow"}, "--by needs the whole capture"},
      {{"--frames", "--follow", "--method", "GetBlock"}, "not with --frames --follow"},
      {{"--frames", "--follow", "--slower-than", "1s"}, "not with --frames --follow"},
      {{"--slower-than", "40"}, "--slower-than: '40' is not a duration"},
      {{"--since", "yesterday"}, "--since: 'yesterday' is no time"},
      {{"--until", "2026-12-01T25:00:00Z"}, "--until: '2026-12-01T25:00:00Z' is no time"},
      {{"--since", "5s", "--until", "5s"}, "--until is not after --since"},
      {{"--session", "one"}, "--session: "},
  };
  for (const auto& [words, message] : cases) {
    std::vector<std::string> all{ztape(), "show", "-r", "/nowhere"};
    all.insert(all.end(), words.begin(), words.end());
    const auto ended = run(all);
    EXPECT_EQ(ended.status, 2) << message;
    expect_has(ended.err, message);
    EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
    EXPECT_EQ(ended.out, "");
  }
}

}  // namespace
}  // namespace ztape::test
