// What the writer does with files, errors and connections.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <filesystem>
#include <thread>

#include "tests/capture-format/sample.h"
#include "tests/support/temporary_directory.h"

namespace ztape {
namespace {

using sample::span_of;

unsigned mode_of(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_mode & 0777u;
}

TEST(Writer, AFileIsForItsOwnerOnly) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  ASSERT_TRUE(CaptureWriter::create(path, sample::start()).has_value());
  EXPECT_EQ(mode_of(path), 0600u);
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  ASSERT_TRUE(CaptureWriter::create(path, sample::start(), {.overwrite = true}).has_value());
  EXPECT_EQ(mode_of(path), 0600u);
}

TEST(Writer, AnExistingFileIsLeftAlone) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  sample::write_file(path, "precious");
  const auto writer = CaptureWriter::create(path, sample::start());
  ASSERT_FALSE(writer.has_value());
  EXPECT_EQ(writer.error().code, ErrorCode::usage);
  EXPECT_EQ(writer.error().subject, path);
  EXPECT_EQ(sample::read_file(path), "precious");
}

TEST(Writer, AnUnusablePathIsAnIoErrorWithTheSystemsWords) {
  const auto writer = CaptureWriter::create("/nowhere/at/all.ztape", sample::start());
  ASSERT_FALSE(writer.has_value());
  EXPECT_EQ(writer.error().code, ErrorCode::io);
  EXPECT_NE(writer.error().message.find("No such file or directory"), std::string::npos);
}

TEST(Writer, ACaptureIsOneFromTheStart) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  auto writer = CaptureWriter::create(path, sample::start());
  ASSERT_TRUE(writer.has_value());
  const auto back = sample::read_all(path);
  ASSERT_EQ(back.records.size(), 1u);
  ASSERT_EQ(back.damage.size(), 1u);
  EXPECT_EQ(back.damage[0].code, ErrorCode::torn);
}

TEST(Writer, WhatWasFlushedIsInTheFile) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  auto writer = CaptureWriter::create(path, sample::start());
  const std::string bytes = "hello";
  ASSERT_TRUE((*writer)->append_chunk({.connection = 1, .bytes = span_of(bytes)}));
  EXPECT_GT((*writer)->block_bytes_pending(), bytes.size());
  EXPECT_EQ(sample::read_all(path).records.size(), 1u);
  ASSERT_TRUE((*writer)->flush());
  EXPECT_EQ((*writer)->block_bytes_pending(), 0u);
  EXPECT_EQ((*writer)->bytes_written(), std::filesystem::file_size(path));
  EXPECT_EQ(sample::read_all(path).records.size(), 2u);
  EXPECT_TRUE((*writer)->flushed());
  // Nothing pending: nothing written.
  const auto written = (*writer)->bytes_written();
  ASSERT_TRUE((*writer)->flush());
  EXPECT_EQ((*writer)->bytes_written(), written);
}

TEST(Writer, AWriterThatGoesAwayLeavesWhatItWasGiven) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  {
    auto writer = CaptureWriter::create(path, sample::start());
    ASSERT_TRUE((*writer)->append(sample::open_record(1, 5)));
  }
  EXPECT_EQ(sample::read_all(path).records.size(), 2u);
}

TEST(Writer, AfterTheEndNothingCanBeAppended) {
  test::TemporaryDirectory folder;
  auto writer = CaptureWriter::create(folder.file("a.ztape"), sample::start());
  ASSERT_TRUE((*writer)->finish());
  const auto done = (*writer)->append(sample::open_record(1, 5));
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, ErrorCode::usage);
}

TEST(Writer, ABlockIsClosedBySize) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  auto writer = CaptureWriter::create(path, sample::start(), {.block_bytes = 1000});
  const auto bytes = sample::noise(400, 1);
  for (int i = 0; i < 9; ++i) ASSERT_TRUE((*writer)->append_chunk({.connection = 1, .bytes = span_of(bytes)}));
  EXPECT_EQ((*writer)->block_bytes_pending(), 0u);
  ASSERT_TRUE((*writer)->finish());
  EXPECT_EQ(sample::read_all(path).blocks, 4u);  // CaptureStart, then three chunks each
}

TEST(Writer, ARecordThatIsTooLargeIsRefusedAndTheCaptureGoesOn) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  auto writer = CaptureWriter::create(path, sample::start());
  const auto large = sample::chunk_record(1, Direction::client_to_server, 0, 1, std::string(25 << 20, 'x'));
  const auto refused = (*writer)->append(large);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::over_limit);
  ASSERT_TRUE((*writer)->append(sample::open_record(1, 5)));
  ASSERT_TRUE((*writer)->finish());
  const auto back = sample::read_all(path);
  EXPECT_EQ(back.records.size(), 2u);
  EXPECT_TRUE(back.damage.empty());
}

TEST(Writer, AFullDiskIsAnErrorThatStays) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  const auto writer = CaptureWriter::create("/dev/full", sample::start(), {.overwrite = true});
  ASSERT_FALSE(writer.has_value());
  EXPECT_EQ(writer.error().code, ErrorCode::io);
  EXPECT_NE(writer.error().message.find("No space left on device"), std::string::npos);
}

// In a child process: stdout there is the pipe, and the reader of it closes early.
TEST(Writer, AnErrorOfTheFileIsReturnedByEveryLaterCall) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGPIPE, SIG_IGN);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[1]);
    auto writer = CaptureWriter::create("-", sample::start());
    if (!writer) _exit(10);
    close(ends[0]);
    pollfd no_reader{STDOUT_FILENO, 0, 0};  // POLLERR, once the parent has closed the other end too
    if (poll(&no_reader, 1, -1) != 1) _exit(15);
    if ((*writer)->append(sample::open_record(1, 5)).has_value() == false) _exit(11);
    const auto first = (*writer)->flush();
    if (first.has_value() || first.error().code != ErrorCode::io) _exit(12);
    const auto second = (*writer)->append(sample::open_record(2, 6));
    if (second.has_value() || second.error().message != first.error().message) _exit(13);
    if ((*writer)->finish().has_value() || (*writer)->flush().has_value()) _exit(14);
    _exit(0);
  }
  close(ends[0]);
  close(ends[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// In a child process: the limit on a file's size stands for a disk that fills up within a block.
TEST(Writer, AFileThatCannotGrowEndsWithItsLastWholeBlock) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 100'000, .rlim_max = 100'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto writer = CaptureWriter::create(path, sample::start());
    const auto bytes = sample::noise(30'000, 1);
    int blocks = 0;
    while ((*writer)->append_chunk({.connection = 1, .bytes = span_of(bytes)}) && (*writer)->flush()) ++blocks;
    _exit(blocks);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
  const auto back = sample::read_all(path);
  EXPECT_EQ(back.blocks, 4u);
  ASSERT_EQ(back.damage.size(), 1u);
  EXPECT_EQ(back.damage[0].code, ErrorCode::torn);
  EXPECT_EQ(back.damage[0].bytes, 0u);
}

TEST(Writer, StdoutThroughASlowNonBlockingPipeIsWhole) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto bytes = sample::noise(3 << 20, 9);  // many times what a pipe holds: writes are partial
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(ends[0]);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[1]);
    auto writer = CaptureWriter::create("-", sample::start());
    const bool good =
        writer && (*writer)->append_chunk({.connection = 1, .bytes = span_of(bytes)}) && (*writer)->finish();
    _exit(good ? 0 : 1);
  }
  close(ends[1]);
  std::string got;
  std::string piece(1000, '\0');
  for (ssize_t n = 0; (n = read(ends[0], piece.data(), piece.size())) > 0;)
    got.append(piece, 0, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  auto reader = CaptureReader::open_bytes(got, "pipe");
  ASSERT_TRUE(reader.has_value());
  const auto back = sample::read_all(**reader);
  EXPECT_EQ(back.records.size(), 2u);
  EXPECT_TRUE(back.damage.empty());
}

TEST(Writer, AReaderTakesAPipeToo) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  {
    auto writer = CaptureWriter::create(path, sample::start());
    ASSERT_TRUE(
        (*writer)->append(sample::chunk_record(1, Direction::client_to_server, 0, 1, sample::noise(1 << 20, 3))));
    ASSERT_TRUE((*writer)->finish());
  }
  const auto fifo = folder.file("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::thread feeder([&] { sample::write_file(fifo, sample::read_file(path)); });
  const auto back = sample::read_all(fifo);
  feeder.join();
  EXPECT_EQ(back.records, sample::read_all(path).records);
  EXPECT_TRUE(back.damage.empty());
}

TEST(Writer, ACloseIsFilledInFromTheChunks) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  const std::string request = "request";
  const std::string answer = "answer";
  {
    auto writer = CaptureWriter::create(path, sample::start());
    ASSERT_TRUE((*writer)->append_chunk({.connection = 7, .offset = 0, .bytes = span_of(request).first(3)}));
    ASSERT_TRUE((*writer)->append_chunk({.connection = 8, .offset = 0, .bytes = span_of(answer)}));
    ASSERT_TRUE(
        (*writer)->append(sample::chunk_record(7, Direction::client_to_server, 3, 1, request.substr(3), capture::FIN)));
    ASSERT_TRUE((*writer)->append_chunk({.connection = 7,
                                         .direction = Direction::server_to_client,
                                         .bytes = span_of(answer),
                                         .end = capture::FAILED,
                                         .error = "ECONNRESET"}));
    capture::ConnectionClose close;
    close.set_connection(7);
    close.set_time_ns(99);
    close.set_error("kept");
    ASSERT_TRUE((*writer)->append_close(close));
    // What is appended as it is stays as it is.
    capture::Record plain;
    plain.mutable_connection_close()->set_connection(8);
    plain.mutable_connection_close()->mutable_client_to_server()->set_bytes(123);
    ASSERT_TRUE((*writer)->append(plain));
    ASSERT_TRUE((*writer)->finish());
  }
  std::vector<capture::ConnectionClose> closes;
  auto reader = CaptureReader::open(path);
  while (const auto* record = (*reader)->next()) {
    if (record->has_connection_close()) closes.push_back(record->connection_close());
  }
  ASSERT_EQ(closes.size(), 2u);
  EXPECT_EQ(closes[0].time_ns(), 99);
  EXPECT_EQ(closes[0].error(), "kept");
  EXPECT_EQ(closes[0].client_to_server().bytes(), 7u);
  EXPECT_EQ(closes[0].client_to_server().xxh3_64(), XXH3_64bits(request.data(), request.size()));
  EXPECT_EQ(closes[0].client_to_server().end(), capture::FIN);
  EXPECT_EQ(closes[0].server_to_client().xxh3_64(), XXH3_64bits(answer.data(), answer.size()));
  EXPECT_EQ(closes[0].server_to_client().end(), capture::FAILED);
  EXPECT_EQ(closes[1].client_to_server().bytes(), 123u);
  EXPECT_EQ(closes[1].client_to_server().xxh3_64(), 0u);
}

}  // namespace
}  // namespace ztape
