// `ztape proxy` on a disk that is full, stalls, fails or will not promise anything, and on a clock that is set back:
// the traffic goes on, and what the capture has not is said in it.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "capture-format/reader.h"
#include "capture-format/verify.h"
#include "tests/support/proxy_process.h"
#include "tests/support/recorded_bytes.h"
#include "tests/support/sender.h"
#include "tests/support/shimmed_disk.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

// Far more than a queue of 1 MiB, the sockets' buffers and a block hold.
constexpr std::size_t kMuch = 24 << 20;

class ProxyDisk : public testing::Test {
 protected:
  void start(std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--queue-bytes", "1M", "--compression", "none"});
    proxy_ = std::make_unique<ProxyProcess>(listener_.address(), capture_, more, disk_.launcher());
    wallet_ = Socket::connect(proxy_->address());
    server_ = listener_.accept();
  }
  void answer(const std::string& text) {
    server_.send(text);
    ASSERT_TRUE(wallet_.receive(text.size()) == text);
  }
  void much() {
    Sender sender(server_, much_);
    ASSERT_TRUE(wallet_.receive(much_.size()) == much_);
  }
  int stop() {
    const int status = proxy_->stop();
    out_ = proxy_->process().stdout_text();
    err_ = proxy_->process().stderr_text();
    return status;
  }
  // What the answers were, is in the file or in its gaps. That the bytes stand where they must, read_traffic() proves.
  RecordedTraffic expect_accounted_for(const std::string& sent) const {
    auto traffic = read_traffic(capture_);
    EXPECT_TRUE(traffic.whole);
    const auto& recorded = traffic.connections.at(1).bytes[1];
    uint64_t missing = 0;
    std::string expected;
    std::size_t at = 0;
    for (const auto& gap : traffic.gaps) {
      expected += sent.substr(at, gap.offset() - at);
      at = gap.offset() + gap.bytes();
      missing += gap.bytes();
    }
    expected += sent.substr(at);
    EXPECT_TRUE(recorded == expected);
    EXPECT_EQ(recorded.size() + missing, sent.size());
    const auto report = verify(capture_);
    EXPECT_TRUE(report->damage.empty() && report->faults.empty());
    EXPECT_EQ(report->gap_bytes, missing);
    return traffic;
  }
  [[nodiscard]] bool said(const std::string& text) const { return (out_ + err_).find(text) != std::string::npos; }

  ShimmedDisk disk_;
  TemporaryDirectory folder_;
  std::string capture_ = folder_.file("a.ztape");
  ListeningSocket listener_;
  std::unique_ptr<ProxyProcess> proxy_;
  Socket wallet_, server_;
  const std::string much_ = pattern(kMuch);
  std::string out_, err_;
};

TEST_F(ProxyDisk, ThatIsFullForAWhileLeavesAGapAndRecordingGoesOn) {
  disk_.set("limit 1000000");  // from the start: room that was allocated stays
  start();
  answer("before");
  much();
  proxy_->process().wait_for_stderr("No space left on device; the traffic goes on, and recording does when there is");
  answer("meanwhile");
  disk_.set("");
  proxy_->process().wait_for_stderr("there is room again, recording goes on behind a gap");
  answer("and after");
  EXPECT_EQ(stop(), 3);
  EXPECT_TRUE(said("the disk was full: 1 time")) << out_;
  EXPECT_TRUE(said("(1 gap in the capture)")) << out_;
  const auto traffic = expect_accounted_for("before" + much_ + "meanwhileand after");
  EXPECT_TRUE(traffic.connections.at(1).bytes[1].ends_with("and after"));
  EXPECT_EQ(traffic.gaps.size(), 1u);
  EXPECT_NE(traffic.gaps.at(0).reason().find("the disk was full"), std::string::npos);
}

TEST_F(ProxyDisk, ThatStaysFullHasRoomForTheEndOfTheCapture) {
  disk_.set("limit 1000000");
  start();
  much();
  EXPECT_EQ(stop(), 3);
  expect_accounted_for(much_);
}

// Without fallocate(2) no room is kept: then the file may end with its last whole block.
TEST_F(ProxyDisk, ThatStaysFullOnAFileSystemThatKeepsNoRoomLeavesWholeBlocks) {
  disk_.set("limit 1000000\nno-fallocate 1");
  start();
  much();
  EXPECT_EQ(stop(), 3);
  const auto traffic = read_traffic(capture_);
  const auto& recorded = traffic.connections.at(1).bytes[1];
  EXPECT_TRUE(!recorded.empty() && recorded == much_.substr(0, recorded.size()));
  EXPECT_TRUE(said("No space left on device")) << out_;
}

TEST_F(ProxyDisk, ThatHasNotTheRoomItPromisedEndsTheRecordingAndNotTheTraffic) {
  start();
  answer("before");
  disk_.set("limit 1000000");
  much();
  proxy_->process().wait_for_stderr("No space left on device; the traffic goes on without being recorded");
  answer("and after");
  EXPECT_EQ(stop(), 3);
  const auto recorded = read_traffic(capture_).connections[1].bytes[1];  // nothing, if that was the first block
  EXPECT_TRUE(recorded == ("before" + much_).substr(0, recorded.size()));
}

TEST_F(ProxyDisk, ThatStallsLeavesAGapAndTheTrafficGoesOn) {
  start();
  answer("before");
  disk_.set("stall 1");
  much();  // arrives while nothing can be written
  disk_.set("");
  EXPECT_EQ(stop(), 3);
  EXPECT_TRUE(said("in the capture)")) << out_;
  const auto traffic = expect_accounted_for("before" + much_);
  ASSERT_FALSE(traffic.gaps.empty());
  EXPECT_NE(traffic.gaps.at(0).reason().find("the disk was too slow"), std::string::npos);
}

TEST_F(ProxyDisk, ThatStallsHoldsTheTrafficBackWhereThatIsAskedFor) {
  start({"--when-disk-is-slow", "hold"});
  answer("before");
  disk_.set("stall 1");
  {
    Sender sender(server_, much_);
    std::string first = wallet_.receive(1000);
    sender.wait_until_stuck();
    EXPECT_LT(sender.sent(), much_.size());
    disk_.set("");
    EXPECT_TRUE(first + wallet_.receive(much_.size() - first.size()) == much_);
  }
  EXPECT_EQ(stop(), 0) << out_;
  EXPECT_TRUE(said("the traffic waited for the disk: ")) << out_;
  EXPECT_TRUE(said("lost: nothing")) << out_;
  EXPECT_TRUE(expect_accounted_for("before" + much_).gaps.empty());
}

TEST_F(ProxyDisk, ThatCannotSyncIsToldInTheLogTheSummaryAndTheCapture) {
  start({"--sync", "interval"});
  disk_.set("sync EIO");
  answer("something to sync");
  proxy_->process().wait_for_stderr("fdatasync: Input/output error; what was written may not survive a power cut");
  answer("and more");
  disk_.set("");
  EXPECT_EQ(stop(), 3);
  EXPECT_TRUE(said("not surely on the disk: fdatasync failed ")) << out_;
  EXPECT_TRUE(said("lost: nothing")) << out_;
  expect_accounted_for("something to syncand more");
  auto reader = CaptureReader::open(capture_);
  std::string marks;
  while (const auto* record = (*reader)->next()) marks += record->mark().text();
  EXPECT_NE(marks.find("fdatasync: Input/output error"), std::string::npos);
}

TEST_F(ProxyDisk, ThatCannotSyncAtTheVeryEndIsToldToo) {
  start({"--sync", "interval"});
  answer("something to sync");
  disk_.set("sync EIO");
  EXPECT_EQ(stop(), 3);
  EXPECT_TRUE(said("not surely on the disk: fdatasync failed ")) << out_;
}

TEST_F(ProxyDisk, ThatSyncsSlowlyHoldsNobodyBack) {
  start({"--sync", "interval"});
  disk_.set("sync-stall 1");
  much();
  answer("and more");
  disk_.set("");
  stop();
  EXPECT_FALSE(said("fdatasync failed")) << out_;
  expect_accounted_for(much_ + "and more");
}

TEST_F(ProxyDisk, ThatFailsEndsTheRecordingAndNotTheTraffic) {
  start();
  answer("before");
  disk_.set("write EIO");
  much();
  proxy_->process().wait_for_stderr("Input/output error; the traffic goes on without being recorded");
  disk_.set("");
  answer("and after");
  EXPECT_EQ(stop(), 3);
  EXPECT_TRUE(said("Input/output error")) << out_;
}

TEST_F(ProxyDisk, AClockThatIsSetBackIsAnAnchorAndNoTimeGoesBack) {
  constexpr int64_t kBack = 3'600'000'000'000;
  start();
  answer("before");
  disk_.set("wall -" + std::to_string(kBack));
  answer("set back");
  // At the end there is an anchor anyway: it has to come while the recording goes on.
  auto opened = CaptureReader::follow(capture_);
  ASSERT_TRUE(opened);
  auto& reader = **opened;
  int64_t offset_before = 0, offset_now = 0, last_ns = 0;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (offset_now == 0 && std::chrono::steady_clock::now() < deadline) {
    const auto* record = reader.next();
    if (!record) {
      reader.wait(std::chrono::milliseconds(20));
      continue;
    }
    if (record->has_capture_start()) {
      const auto& start = record->capture_start().opened();
      offset_before = start.realtime_unix_ns() - start.monotonic_ns();
    }
    if (record->has_clock_anchor()) {
      const auto& anchor = record->clock_anchor();
      offset_now = anchor.realtime_unix_ns() - anchor.monotonic_ns();
      EXPECT_GE(anchor.time_ns(), last_ns);
    }
    if (!record->has_chunk()) continue;
    EXPECT_GE(record->chunk().time_ns(), last_ns);
    last_ns = record->chunk().time_ns();
  }
  EXPECT_EQ(stop(), 0);
  EXPECT_NEAR(static_cast<double>(offset_now - offset_before), -kBack, 1e9);
  EXPECT_LT(last_ns, kBack);
}

}  // namespace
}  // namespace ztape::test
