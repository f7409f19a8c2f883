// A full disk, as a limit of the file's size that the test moves: what is missing is said, and what comes after is
// readable.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "capture-format/verify.h"
#include "http2/recorded_connection.h"
#include "proto/capture.pb.h"
#include "tests/proxy/recorded_fixture.h"
#include "tests/support/calls.h"
#include "tests/support/recorded_bytes.h"
#include "tests/support/temporary_directory.h"

namespace ztape::proxy {
namespace {

class OutageTest : public testing::Test {
 protected:
  OutageTest() {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
  }
  ~OutageTest() override { setrlimit(RLIMIT_FSIZE, &before_); }

  void start() {
    CaptureRunOptions run;
    run.path = path_;
    run.block_bytes = 2000;
    RecordWriterOptions options;
    options.compression = {.automatic = false, .level = -100};
    options.on_problem = [this](const std::string& line) { problems_.push_back(line); };
    auto writer = RecordWriter::start(std::move(run), std::move(options));
    ASSERT_TRUE(writer) << writer.error().line();
    writer_ = std::move(*writer);
  }
  // No more than so many bytes from now on.
  void fill_disk(uint64_t more = 0) { limit(writer_->bytes_written() + more); }
  void free_disk() { limit(before_.rlim_cur); }
  void limit(rlim_t bytes) const {
    rlimit now = before_;
    now.rlim_cur = bytes;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &now), 0);
  }
  void next_look() {
    now_.ns += kRetryNs;
    writer_->flush_if_due(now_);
  }
  void write(const QueuedRecord& record) { writer_->write(record, now_); }

  test::TemporaryDirectory folder_;
  std::string path_ = folder_.file("a.ztape");
  MonotonicTime now_{1000};
  std::vector<std::string> problems_;
  std::unique_ptr<RecordWriter> writer_;
  rlimit before_{};
};

uint64_t gap_bytes(const test::RecordedTraffic& traffic) {
  uint64_t bytes = 0;
  for (const auto& gap : traffic.gaps) bytes += gap.bytes();
  return bytes;
}

uint64_t gap_records(const test::RecordedTraffic& traffic) {
  uint64_t records = 0;
  for (const auto& gap : traffic.gaps) records += gap.records();
  return records;
}

// Everything that the fixture has is in the file or in a Gap, and the account of what is lost agrees.
void expect_all_accounted_for(const std::string& path, const std::vector<test::FixtureConnection>& connections,
                              const Loss& loss) {
  const auto traffic = test::read_traffic(path);
  EXPECT_TRUE(traffic.whole);
  uint64_t recorded = 0;
  uint64_t sent = 0;
  for (const auto& [id, connection] : traffic.connections) {
    recorded += connection.bytes[0].size() + connection.bytes[1].size();
  }
  for (const auto& connection : connections) sent += connection.bytes[0].size() + connection.bytes[1].size();
  EXPECT_EQ(recorded + gap_bytes(traffic), sent);
  EXPECT_EQ(loss.bytes, gap_bytes(traffic));
  EXPECT_EQ(loss.chunks, gap_records(traffic));
  EXPECT_EQ(loss.gaps, traffic.gaps.size());
  const auto report = verify(path);
  EXPECT_TRUE(report->damage.empty()) << report->damage.front().message;
  EXPECT_TRUE(report->faults.empty()) << report->faults.front().connection << ": " << report->faults.front().message;
  EXPECT_EQ(report->gap_bytes, loss.bytes);
}

// From each record on the disk is full for a while.
TEST_F(OutageTest, IsAGapAndWhatComesAfterIsReadableFromThereOn) {
  const auto connections = test::load_fixture("zaino-zingo");
  const auto expected = test::calls_of(connections);
  auto records = test::records_of(connections, 2000);
  const std::size_t away = records.size() / 4;
  uint64_t readable_after = 0;
  for (std::size_t at = 1; at + 3 < records.size(); at += 7) {
    SCOPED_TRACE("full from record " + std::to_string(at));
    remove(path_.c_str());
    problems_.clear();
    start();
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (i == at) fill_disk(at % 3 == 0 ? 1500 : 0);
      if (i == at + away) {
        free_disk();
        next_look();
      }
      write(records[i]);
    }
    free_disk();
    next_look();
    writer_->finish(now_);
    ASSERT_EQ(writer_->files().error, "");
    ASSERT_EQ(writer_->files().outages, 1u);
    ASSERT_EQ(problems_.size(), 2u);
    ASSERT_NE(problems_[0].find("File too large"), std::string::npos) << problems_[0];
    expect_all_accounted_for(path_, connections, writer_->loss());
    ASSERT_GT(writer_->loss().bytes, 0u);
    // Calls that began after the gap, and that the capture has, are as they were.
    const auto capture = http2::read_capture(path_, {});
    for (const auto& call : capture->connections.front().calls) {
      if (call.began_earlier || !call.unreadable_reason.empty()) continue;
      ASSERT_EQ(test::summary_of(call, true).dump(), expected.at({1, call.stream}));
      readable_after += call.start_ns > capture->gaps.front().last_ns() ? 1 : 0;
    }
    ASSERT_EQ(writer_->calls().total(), expected.size());  // the tap went on
    if (HasFailure()) return;
  }
  EXPECT_GT(readable_after, 100u);
}

TEST_F(OutageTest, ThatNeverEndsIsSaidAtTheEndOfAWholeFile) {
  const auto connections = test::load_fixture("zaino-zingo");
  auto records = test::records_of(connections, 2000);
  for (std::size_t at = 1; at + 3 < records.size(); at += 17) {
    SCOPED_TRACE("room for " + std::to_string(at) + " KB");
    remove(path_.c_str());
    problems_.clear();
    limit(100'000 + at * 100);  // known from the start, as what fallocate(2) would not give
    start();
    for (const auto& record : records) write(record);
    next_look();
    writer_->finish(now_);
    free_disk();
    ASSERT_EQ(writer_->files().error, "");
    ASSERT_EQ(problems_.size(), 1u);
    expect_all_accounted_for(path_, connections, writer_->loss());
    ASSERT_GT(writer_->loss().bytes, 0u);
    if (HasFailure()) return;
  }
}

TEST_F(OutageTest, HasConnectionsThatCameAndWentAndThatCameAndStayed) {
  const auto connections = test::load_fixture("lightwalletd-grpcurl");
  ASSERT_GT(connections.size(), 3u);
  start();
  std::vector<std::vector<QueuedRecord>> records;
  for (const auto& connection : connections) records.push_back(test::records_of({connection}));
  // One is there before and after, one closes meanwhile, one comes and goes, one comes and stays.
  const auto play = [&](std::size_t which, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < std::min(to, records[which].size()); ++i) write(records[which][i]);
  };
  play(0, 0, 4);
  play(1, 0, 4);
  writer_->flush_if_due(MonotonicTime{now_.ns += kBlockAgeNs});
  fill_disk();
  play(0, 4, 6);
  play(1, 4, 1000);
  play(2, 0, 1000);
  play(3, 0, 5);
  now_.ns += kBlockAgeNs;
  writer_->flush_if_due(now_);
  play(0, 6, 7);
  free_disk();
  next_look();
  play(0, 7, 1000);
  play(3, 5, 1000);
  writer_->finish(now_);
  EXPECT_EQ(writer_->files().error, "");
  const auto traffic = test::read_traffic(path_);
  for (const ConnectionId id : {1, 2, 3, 4}) {
    EXPECT_TRUE(traffic.connections.at(id).closed) << id;
    EXPECT_EQ(traffic.connections.at(id).open.connection(), id);
    EXPECT_EQ(traffic.connections.at(id).close.client_to_server().end(), capture::FIN) << id;
  }
  const auto report = verify(path_);
  EXPECT_TRUE(report->faults.empty()) << report->faults.front().message;
  EXPECT_EQ(report->connections_proven, 4u);
}

TEST_F(OutageTest, ThatEndsAndBeginsAgainIsCountedEachTime) {
  const auto connections = test::load_fixture("zaino-zingo");
  auto records = test::records_of(connections, 1000);
  start();
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (i % 80 == 20) fill_disk(3000);
    if (i % 80 == 70) {
      free_disk();
      next_look();
    }
    write(records[i]);
  }
  free_disk();
  next_look();
  writer_->finish(now_);
  EXPECT_GT(writer_->files().outages, 2u);
  EXPECT_EQ(writer_->files().error, "");
  expect_all_accounted_for(path_, connections, writer_->loss());
}

// Room for one more block and no more: what has to be said of many connections is said bit by bit.
TEST_F(OutageTest, WithLittleRoomAgainGoesOnWhereItStopped) {
  const auto connections = test::load_fixture("lightwalletd-grpcurl");
  auto records = test::records_of(connections, 300);
  start();
  std::size_t i = 0;
  for (; i < records.size() / 3; ++i) write(records[i]);
  fill_disk();
  for (; i < records.size() * 2 / 3; ++i) write(records[i]);
  for (int k = 0; k < 40; ++k) {
    fill_disk(700);
    next_look();
    if (i < records.size() - 10) write(records[i++]);
  }
  free_disk();
  next_look();
  for (; i < records.size(); ++i) write(records[i]);
  writer_->finish(now_);
  EXPECT_EQ(writer_->files().error, "");
  expect_all_accounted_for(path_, connections, writer_->loss());
}

TEST_F(OutageTest, AnotherErrorEndsTheRecordingAndIsCounted) {
  CaptureRunOptions run;
  run.path = "/dev/full";  // ENOSPC of a device: no file that room could come back to
  run.overwrite = true;
  auto writer = RecordWriter::start(std::move(run), {});
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace ztape::proxy
