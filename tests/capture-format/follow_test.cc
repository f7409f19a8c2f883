// A capture that is still being written: read as it grows, whole blocks only, up to its trailer or its writer's death.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "capture-format/reader.h"
#include "tests/capture-format/sample.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

using std::chrono::milliseconds;

// Written by hand, so that it may stand anywhere within a block; locked as a writer's file is.
class GrowingFile {
 public:
  explicit GrowingFile(const std::string& path) : fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) {
    flock(fd_, LOCK_EX | LOCK_NB);
  }
  ~GrowingFile() { die(); }
  void add(std::string_view bytes) const { ASSERT_EQ(write(fd_, bytes.data(), bytes.size()), ssize_t(bytes.size())); }
  void cut(off_t size) const { ASSERT_EQ(ftruncate(fd_, size), 0); }
  void die() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

std::string small_capture(const std::string& path) {
  auto writer = CaptureWriter::create(path, capture::CaptureStart());
  for (int i = 1; i <= 3; ++i) {
    capture::Record open;
    open.mutable_connection_open()->set_connection(i);
    EXPECT_TRUE((*writer)->append(open));
    EXPECT_TRUE((*writer)->flush());
  }
  EXPECT_TRUE((*writer)->finish());
  return sample::read_file(path);
}

int records_there(CaptureReader& reader) {
  int count = 0;
  while (reader.next()) ++count;
  return count;
}

class Follow : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  std::string whole_ = small_capture(directory_.file("whole.ztape"));
  std::string path_ = directory_.file("growing.ztape");
};

TEST_F(Follow, GivesEachRecordOnceWhereverTheFileStandsInBetween) {
  for (std::size_t cut = 84; cut < whole_.size(); ++cut) {
    unlink(path_.c_str());
    GrowingFile file(path_);
    file.add(whole_.substr(0, cut));
    auto reader = CaptureReader::follow(path_);
    ASSERT_TRUE(reader) << cut;
    const int first = records_there(**reader);
    ASSERT_FALSE((*reader)->ended()) << cut;
    file.add(whole_.substr(cut));
    (*reader)->wait(milliseconds(1));
    ASSERT_EQ(first + records_there(**reader), 4) << cut;
    ASSERT_TRUE((*reader)->ended()) << cut;
    ASSERT_TRUE((*reader)->damage().empty()) << cut << ": " << (*reader)->damage()[0].message;
  }
}

TEST_F(Follow, EndsTornWhenTheWriterIsGone) {
  GrowingFile file(path_);
  file.add(whole_.substr(0, whole_.size() - 150));
  auto reader = CaptureReader::follow(path_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(records_there(**reader), 4);
  for (int i = 0; i < 10; ++i) {
    (*reader)->wait(milliseconds(100));
    records_there(**reader);
  }
  EXPECT_FALSE((*reader)->ended()) << "its writer lives";
  file.die();
  for (int i = 0; i < 100 && !(*reader)->ended(); ++i) {
    (*reader)->wait(milliseconds(100));
    EXPECT_EQ(records_there(**reader), 0);
  }
  ASSERT_TRUE((*reader)->ended());
  ASSERT_EQ((*reader)->damage().size(), 1U);
  EXPECT_EQ((*reader)->damage()[0].code, ErrorCode::torn);
}

TEST_F(Follow, EndsWhenAnotherRecordingBeginsInTheFile) {
  GrowingFile file(path_);
  file.add(whole_.substr(0, whole_.size() - 150));
  auto reader = CaptureReader::follow(path_);
  ASSERT_TRUE(reader);
  records_there(**reader);
  file.cut(10);
  (*reader)->wait(milliseconds(1));
  EXPECT_EQ(records_there(**reader), 0);
  ASSERT_TRUE((*reader)->ended());
  EXPECT_NE((*reader)->damage()[0].message.find("another recording"), std::string::npos);
}

TEST_F(Follow, PassesOverADamagedBlockOnceTheNextIsThere) {
  auto damaged = whole_;
  const auto second = whole_.find("ztap", 20) - 8;  // the header of block 1
  damaged[second + 90] = static_cast<char>(damaged[second + 90] ^ 0x55);
  GrowingFile file(path_);
  file.add(damaged.substr(0, damaged.size() - 150));
  auto reader = CaptureReader::follow(path_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(records_there(**reader), 3);
  EXPECT_EQ((*reader)->damage().size(), 1U);
  EXPECT_FALSE((*reader)->ended());
}

// A pipe whose other end `write_all` fills from a thread.
template <typename WriteAll>
Result<std::unique_ptr<CaptureReader>> through_pipe(WriteAll write_all, std::thread& thread, int& read_end) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  read_end = ends[0];
  thread = std::thread([write_all, out = ends[1]] {
    write_all(out);
    close(out);
  });
  return CaptureReader::open("/dev/fd/" + std::to_string(ends[0]));
}

TEST_F(Follow, APipeIsReadToItsEndByteByByte) {
  std::thread thread;
  int read_end = -1;
  auto reader = through_pipe(
      [this](int out) {
        for (const char byte : whole_) EXPECT_EQ(write(out, &byte, 1), 1);
      },
      thread, read_end);
  ASSERT_TRUE(reader);
  EXPECT_EQ(records_there(**reader), 4);
  EXPECT_TRUE((*reader)->damage().empty());
  thread.join();
  close(read_end);
}

TEST_F(Follow, APipeThatNeverBecomesACaptureIsAnErrorAndNotReadForEver) {
  signal(SIGPIPE, SIG_IGN);
  for (const bool begins_well : {false, true}) {
    std::thread thread;
    int read_end = -1;
    auto reader = through_pipe(
        [&](int out) {
          if (begins_well) {
            EXPECT_GT(write(out, whole_.data(), 400), 0);
          }
          const std::string zeros(65536, '\0');
          while (write(out, zeros.data(), zeros.size()) > 0) {
          }
        },
        thread, read_end);
    if (begins_well) {
      ASSERT_TRUE(reader);
      records_there(**reader);
      ASSERT_FALSE((*reader)->damage().empty());
      EXPECT_EQ((*reader)->damage().back().code, ErrorCode::corrupt);
      reader->reset();
    } else {
      ASSERT_FALSE(reader);
      EXPECT_EQ(reader.error().code, ErrorCode::not_a_capture);
      EXPECT_NE(reader.error().message.find("80 MiB"), std::string::npos) << reader.error().message;
    }
    close(read_end);
    thread.join();
  }
}

}  // namespace
}  // namespace ztape::test
