// A recording in several files: each is readable from itself alone, and together they are what one file would be.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "capture-format/verify.h"
#include "http2/recorded_connection.h"
#include "proto/capture.pb.h"
#include "tests/proxy/recorded_fixture.h"
#include "tests/support/temporary_directory.h"

namespace ztape::proxy {
namespace {

class Rotation : public testing::Test {
 protected:
  std::unique_ptr<RecordWriter> start(std::size_t keep = 0, uint64_t bytes = 1ull << 40, std::size_t block = 512 * 1024,
                                      bool overwrite = false) {
    CaptureRunOptions run;
    run.path = folder_.file("a.ztape");
    run.rotate_bytes = bytes;
    run.keep = keep;
    run.block_bytes = block;
    run.overwrite = overwrite;
    (*run.start.mutable_notes())["who"] = "me";
    RecordWriterOptions options;
    options.on_problem = [this](const std::string& line) { problems_.push_back(line); };
    options.on_new_file = [this](const std::string& path) { new_files_.push_back(path); };
    auto writer = RecordWriter::start(std::move(run), std::move(options));
    if (!writer) throw std::runtime_error(writer.error().line());
    return std::move(*writer);
  }
  [[nodiscard]] std::vector<std::string> files() const { return test::capture_files(folder_.path()); }

  void expect_whole(const std::vector<std::string>& paths) const {
    for (const auto& path : paths) {
      const auto report = verify(path);
      ASSERT_TRUE(report) << report.error().line();
      ASSERT_TRUE(report->damage.empty()) << path << ": " << report->damage.front().message;
      ASSERT_TRUE(report->faults.empty()) << path << ": " << report->faults.front().message;
      ASSERT_EQ(report->gaps, 0u) << path;
    }
  }

  test::TemporaryDirectory folder_;
  std::vector<std::string> problems_;
  std::vector<std::string> new_files_;
  MonotonicTime now_{1000};
};

class RotationOfFixture : public Rotation, public testing::WithParamInterface<std::string> {};

// A new file after one record of this recording, at each place where that may be.
TEST_P(RotationOfFixture, AnywhereLosesNothing) {
  const auto connections = test::load_fixture(GetParam());
  const auto expected = test::calls_of(connections);
  auto records = test::records_of(connections, 3000);
  const std::size_t every = 1 + records.size() / 60;
  for (std::size_t at = 1; at <= records.size(); at += every) {
    SCOPED_TRACE("after record " + std::to_string(at));
    for (const auto& path : files()) remove(path.c_str());
    auto writer = start();
    for (std::size_t i = 0; i < records.size(); ++i) {
      writer->write(records[i], now_);
      if (i + 1 == at) writer->rotate(now_);
    }
    writer->finish(now_);
    ASSERT_TRUE(writer->loss().nothing());
    ASSERT_EQ(writer->calls().total(), expected.size());
    const auto paths = files();
    ASSERT_EQ(paths.size(), 2u);
    expect_whole(paths);
    ASSERT_EQ(test::calls_of_files(paths), expected);
    const auto bytes = test::bytes_of_files(paths);
    for (const auto& connection : connections) {
      for (const int direction : {0, 1}) {
        const auto id = static_cast<ConnectionId>(connection.number);
        const auto found = bytes.find({id, direction});
        ASSERT_TRUE((found == bytes.end() ? "" : found->second) == connection.bytes[direction]);
      }
    }
  }
}

// Many files, each of a few records.
TEST_P(RotationOfFixture, AgainAndAgainLosesNothing) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto connections = test::load_fixture(GetParam());
  auto records = test::records_of(connections, 700);
  const double share = std::min(1.0, 150.0 / static_cast<double>(records.size()));
  std::bernoulli_distribution cut(share);
  auto writer = start(0, 1ull << 40, 600);
  std::size_t rotations = 0;
  for (const auto& record : records) {
    writer->write(record, now_);
    if (!cut(random)) continue;
    writer->rotate(now_);
    ++rotations;
  }
  writer->finish(now_);
  ASSERT_TRUE(writer->loss().nothing());
  const auto paths = files();
  ASSERT_EQ(paths.size(), rotations + 1);
  EXPECT_EQ(new_files_.size(), rotations);
  EXPECT_EQ(writer->files().files, rotations + 1);
  expect_whole(paths);
  EXPECT_EQ(test::calls_of_files(paths), test::calls_of(connections));
}

std::string test_name(const testing::TestParamInfo<std::string>& fixture) {
  std::string text = fixture.param;
  std::ranges::replace(text, '-', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(All, RotationOfFixture, testing::ValuesIn(test::fixture_names()), test_name);

TEST_F(Rotation, ComesBySizeAndNoFileIsMuchLarger) {
  constexpr uint64_t kBytes = 60'000;
  const auto connections = test::load_fixture("zaino-zingo");
  auto records = test::records_of(connections);
  auto writer = start(0, kBytes, 6'000);
  for (const auto& record : records) writer->write(record, now_);
  writer->finish(now_);
  const auto paths = files();
  ASSERT_GT(paths.size(), 2u);
  expect_whole(paths);
  uint64_t all = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    struct stat status{};
    ASSERT_EQ(stat(paths[i].c_str(), &status), 0);
    all += static_cast<uint64_t>(status.st_size);
    EXPECT_LT(status.st_size, 90'000);
    if (i + 1 == paths.size()) continue;
    EXPECT_GT(status.st_size, 30'000);
  }
  EXPECT_EQ(writer->files().bytes, all);
  EXPECT_EQ(test::calls_of_files(paths), test::calls_of(connections));
}

TEST_F(Rotation, EachFileSaysWhoseItIsAndOnOneClock) {
  auto records = test::records_of(test::load_fixture("zaino-zingo-send"));
  auto writer = start();
  for (std::size_t i = 0; i < records.size(); ++i) {
    writer->write(records[i], now_);
    if (i % 20 == 19) writer->rotate(now_);
  }
  writer->finish(now_);
  std::string run;
  uint32_t number = 0;
  for (const auto& path : files()) {
    auto reader = CaptureReader::open(path);
    const auto start = (*reader)->next()->capture_start();
    if (run.empty()) run = start.run();
    EXPECT_EQ(start.run(), run);
    EXPECT_EQ(start.run().size(), 32u);
    EXPECT_EQ(start.file_number(), ++number);
    EXPECT_EQ(start.notes().at("who"), "me");
    EXPECT_EQ(path, folder_.file("a.00000" + std::to_string(number) + ".ztape"));
  }
  EXPECT_GT(number, 2u);
}

TEST_F(Rotation, KeepsTheNewestAndDeletesOnlyItsOwn) {
  std::ofstream(folder_.file("a.other.ztape")) << "not ours";
  std::ofstream(folder_.file("b.000001.ztape")) << "not ours";
  auto records = test::records_of(test::load_fixture("zaino-zingo-send"));
  auto writer = start(2);
  for (int i = 0; i < 3; ++i) writer->rotate(now_);
  // Somebody put another file in the place of ours.
  const auto theirs = folder_.file("a.000003.ztape");
  ASSERT_EQ(remove(theirs.c_str()), 0);
  std::ofstream(theirs) << "not ours";
  for (const auto& record : records) writer->write(record, now_);
  for (int i = 0; i < 2; ++i) writer->rotate(now_);
  writer->finish(now_);
  EXPECT_EQ(writer->files().files, 6u);
  EXPECT_EQ(writer->files().deleted, 3u);
  const std::vector<std::string> expected{folder_.file("a.000003.ztape"), folder_.file("a.000005.ztape"),
                                          folder_.file("a.000006.ztape"), folder_.file("a.other.ztape"),
                                          folder_.file("b.000001.ztape")};
  EXPECT_EQ(files(), expected);
}

TEST_F(Rotation, DoesNotOverwriteWhatIsThere) {
  std::ofstream(folder_.file("a.000007.ztape")) << "there before";
  try {
    start();
    FAIL() << "it began";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), folder_.file("a.000007.ztape") + ": the file exists already");
  }
  EXPECT_EQ(files().size(), 1u);
  auto writer = start(0, 1ull << 40, 512 * 1024, true);
  writer->finish(now_);
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(Rotation, PassesOverAFileThatSomebodyMadeMeanwhile) {
  auto writer = start();
  std::ofstream(folder_.file("a.000002.ztape")) << "theirs";
  writer->rotate(now_);
  writer->finish(now_);
  EXPECT_EQ(writer->path(), folder_.file("a.000003.ztape"));
  struct stat status{};
  ASSERT_EQ(stat(folder_.file("a.000002.ztape").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 6);
}

TEST_F(Rotation, GoesOnInTheOldFileWhereNoNewOneCanBeMade) {
  if (geteuid() == 0) {  // who may write everywhere: the folder is gone instead
    const auto records = test::records_of(test::load_fixture("zaino-zingo-send"));
    auto writer = start(0, 20'000, 2'000);
    const auto elsewhere = folder_.path() + ".moved";
    ASSERT_EQ(rename(folder_.path().c_str(), elsewhere.c_str()), 0);
    for (const auto& record : records) writer->write(record, now_);
    now_.ns += 2 * kRetryNs;
    ASSERT_EQ(rename(elsewhere.c_str(), folder_.path().c_str()), 0);
    EXPECT_EQ(problems_.size(), 1u);
    writer->rotate(now_);
    writer->finish(now_);
    EXPECT_TRUE(writer->loss().nothing());
    EXPECT_EQ(files().size(), 2u);
    expect_whole(files());
    return;
  }
  auto writer = start();
  ASSERT_EQ(chmod(folder_.path().c_str(), 0500), 0);
  writer->rotate(now_);
  writer->finish(now_);
  ASSERT_EQ(chmod(folder_.path().c_str(), 0700), 0);
  EXPECT_EQ(problems_.size(), 1u);
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(Rotation, ALaterFileAloneMarksWhatBeganEarlier) {
  const auto connections = test::load_fixture("zaino-zingo");
  auto records = test::records_of(connections);
  auto writer = start();
  for (std::size_t i = 0; i < records.size(); ++i) {
    writer->write(records[i], now_);
    if (i == records.size() / 2) writer->rotate(now_);
  }
  writer->finish(now_);
  const auto later = http2::read_capture(files().at(1), {});
  ASSERT_TRUE(later);
  ASSERT_EQ(later->connections.size(), connections.size());
  const auto& connection = later->connections.front();
  EXPECT_TRUE(connection.began_earlier);
  EXPECT_GT(connection.earlier_bytes[1], 10'000u);
  EXPECT_EQ(connection.missing_bytes, 0u);
  EXPECT_EQ(connection.open.downstream_peer(), "192.0.2.1:1001");
  const auto first = http2::read_capture(files().at(0), {});
  EXPECT_FALSE(first->connections.front().began_earlier);
  EXPECT_EQ(connection.client_settings, first->connections.front().client_settings);
  EXPECT_EQ(connection.client_window_increment, first->connections.front().client_window_increment);
  const auto report = verify(files().at(1));
  EXPECT_EQ(report->connections_continued, 1u);
  EXPECT_EQ(report->connections_proven, 1u);
}

// What a full queue left out is in the file where it was left out; the files behind it go on where the bytes do.
TEST_F(Rotation, GoesOnBehindAGapOfTheQueueWhereverANewFileBegins) {
  const auto connections = test::load_fixture("zaino-zingo");
  const auto count = test::records_of(connections).size();
  for (const auto direction : kDirections) {
    for (std::size_t at = 0; at < count; at += 1 + count / 25) {
      SCOPED_TRACE(testing::Message() << name(direction) << ", the gap behind record " << at);
      for (const auto& path : files()) remove(path.c_str());
      auto records = test::records_of(connections);
      const auto lost =
          std::find_if(records.begin() + static_cast<std::ptrdiff_t>(at), records.end(),
                       [&](const auto& record) { return !record.record && record.direction == direction; });
      if (lost == records.end()) continue;
      capture::Record record;
      auto& gap = *record.mutable_gap();
      gap.set_connection(lost->connection);
      gap.set_direction(static_cast<capture::Direction>(direction));
      gap.set_offset(lost->offset);
      gap.set_bytes(lost->bytes.size());
      gap.set_records(1);
      gap.set_reason("the queue was full");
      *lost = QueuedRecord(std::move(record));
      auto writer = start();
      const std::size_t every = 1 + records.size() / 12;
      for (std::size_t i = 0; i < records.size(); ++i) {
        writer->write(records[i], now_);
        if (i % every == every - 1) writer->rotate(now_);
      }
      writer->finish(now_);
      uint64_t gaps = 0;
      for (const auto& path : files()) {
        const auto report = verify(path);
        ASSERT_TRUE(report) << report.error().line();
        ASSERT_TRUE(report->damage.empty()) << path << ": " << report->damage.front().message;
        ASSERT_TRUE(report->faults.empty()) << path << ": " << report->faults.front().message;
        gaps += report->gaps;
      }
      ASSERT_EQ(gaps, 1u);
    }
  }
}

}  // namespace
}  // namespace ztape::proxy
