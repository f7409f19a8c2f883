// `ztape proxy --rotate-bytes`: a connection goes on across files, each is good alone, all together have every byte,
// and `ztape show --follow` goes on in the next.
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capture-format/reader.h"
#include "capture-format/run_files.h"
#include "http2/frame.h"
#include "tests/support/child_process.h"
#include "tests/support/frames.h"
#include "tests/support/proxy_process.h"
#include "tests/support/sender.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

class ProxyRotation : public testing::Test {
 protected:
  void start(std::vector<std::string> more) {
    more.insert(more.end(), {"--rotate-bytes", "64K", "--compression", "none"});
    proxy_ = std::make_unique<ProxyProcess>(listener_.address(), folder_.file("a.ztape"), more);
    wallet_ = Socket::connect(proxy_->address());
    server_ = listener_.accept();
    wallet_.send(std::string(http2::kClientPreface) + settings({}));
    server_.receive(http2::kClientPreface.size() + 9);
    sent_ = settings({});
    server_.send(sent_);
    wallet_.receive(sent_.size());
  }
  // A call whose answer is that large. Its headers refer to those of the calls before it.
  void call(std::size_t bytes) {
    const auto request = of_wallet_.headers(stream_, grpc_request("/a/B"), false) + data(stream_, message(""), true);
    wallet_.send(request);
    server_.receive(request.size());
    std::string answer = of_server_.headers(stream_, grpc_response(), false);
    const auto body = message(pattern(bytes, stream_));
    for (std::size_t at = 0; at < body.size(); at += 16384) answer += data(stream_, body.substr(at, 16384), false);
    answer += of_server_.headers(stream_, grpc_trailers(0), true);
    Sender sender(server_, answer);
    wallet_.receive(answer.size());
    sent_ += answer;
    stream_ += 2;
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const auto& file : files_of(run_name(folder_.file("a.ztape")))) paths.push_back(file.path);
    return paths;
  }

  TemporaryDirectory folder_;
  ListeningSocket listener_;
  std::unique_ptr<ProxyProcess> proxy_;
  Socket wallet_, server_;
  HeaderEncoder of_wallet_, of_server_;
  uint32_t stream_ = 1;
  std::string sent_;  // to the wallet
};

TEST_F(ProxyRotation, LosesNothingAndEachFileIsGoodAlone) {
  start({});
  for (int i = 0; i < 40; ++i) call(100'000);
  EXPECT_EQ(proxy_->stop(), 0) << proxy_->process().stdout_text();
  const auto paths = files();
  ASSERT_GT(paths.size(), 3u);
  EXPECT_NE(proxy_->process().stdout_text().find("recorded into " + std::to_string(paths.size()) + " files"),
            std::string::npos);
  const std::string ends = R"("ended_by":"trailers")";
  std::string recorded;
  std::size_t calls = 0;
  for (const auto& path : paths) {
    const auto proven = run({ztape(), "verify", "-r", path});
    EXPECT_EQ(proven.status, 0) << proven.out << proven.err;
    const auto shown = run({ztape(), "show", "-r", path, "--calls", "--json", "--method", "/a/B"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    for (std::size_t at = 0; (at = shown.out.find(ends, at)) != std::string::npos; ++at) ++calls;
    auto reader = CaptureReader::open(path);
    while (const auto* record = (*reader)->next()) {
      if (!record->has_chunk() || record->chunk().direction() != capture::SERVER_TO_CLIENT) continue;
      ASSERT_EQ(record->chunk().offset(), recorded.size());
      recorded += record->chunk().bytes();
    }
  }
  EXPECT_TRUE(recorded == sent_);
  EXPECT_EQ(calls, 40u);  // each ends in one file, and is readable there
}

TEST_F(ProxyRotation, KeepsTheNewest) {
  start({"--keep", "2"});
  for (int i = 0; i < 40; ++i) call(100'000);
  EXPECT_EQ(proxy_->stop(), 0);
  const auto there = files_of(run_name(folder_.file("a.ztape")));
  ASSERT_EQ(there.size(), 2u);
  EXPECT_EQ(there[0].number + 1, there[1].number);
  EXPECT_GT(there[0].number, 2u);
  for (const auto& file : there) EXPECT_EQ(run({ztape(), "verify", "-r", file.path}).status, 0);
}

TEST_F(ProxyRotation, IsFollowedFromFileToFile) {
  start({});
  ChildProcess follower({ztape(), "show", "-r", files().front(), "--follow", "--json"});
  for (int i = 0; i < 40; ++i) {
    call(100'000);
    const auto row = nlohmann::json::parse(follower.line(static_cast<std::size_t>(i)));
    EXPECT_EQ(row["stream"], 2 * i + 1);
    EXPECT_EQ(row["method"], "/a/B");
    EXPECT_EQ(row["response_messages"], 1);
    EXPECT_EQ(row["ended_by"], "trailers");
  }
  EXPECT_EQ(proxy_->stop(), 0);
  EXPECT_EQ(follower.wait(), 0) << follower.stderr_text();
  EXPECT_EQ(follower.stderr_text(), "");
  const auto text = follower.stdout_text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 40);
  EXPECT_NE(text.find(files().back()), std::string::npos);  // each row names its file
}

TEST_F(ProxyRotation, WhatIsDeletedBeforeItIsFollowedIsSaid) {
  start({});
  for (int i = 0; i < 40; ++i) call(100'000);
  EXPECT_EQ(proxy_->stop(), 0);
  const auto paths = files();
  ASSERT_GT(paths.size(), 4u);
  for (const int i : {1, 2}) std::filesystem::remove(paths[static_cast<std::size_t>(i)]);
  const auto followed = run({ztape(), "show", "-r", paths[0], "--follow", "--json"});
  EXPECT_EQ(followed.status, 3);
  EXPECT_NE(followed.err.find("2 files between " + paths[0] + " and " + paths[3] + " are gone"), std::string::npos)
      << followed.err;
  EXPECT_NE(followed.out.find(paths.back()), std::string::npos);
}

TEST_F(ProxyRotation, AsAnotherUserNeedsAFolderOfThatUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for --user";
  const auto refused = run({ztape(), "proxy", "--upstream", listener_.address(), "--listen", "127.0.0.1:0", "-w",
                            folder_.file("a.ztape"), "--rotate-bytes", "64K", "--user", "nobody"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find(folder_.path() + ": nobody cannot make files there (Permission denied)"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  EXPECT_TRUE(files().empty());

  const passwd* nobody = getpwnam("nobody");
  ASSERT_EQ(chown(folder_.path().c_str(), nobody->pw_uid, nobody->pw_gid), 0);
  start({"--user", "nobody", "--keep", "3"});
  for (int i = 0; i < 40; ++i) call(100'000);
  EXPECT_EQ(proxy_->stop(), 0) << proxy_->process().stderr_text();
  const auto there = files_of(run_name(folder_.file("a.ztape")));
  EXPECT_EQ(there.size(), 3u);
  EXPECT_GT(there.back().number, 3u);
}

}  // namespace
}  // namespace ztape::test
