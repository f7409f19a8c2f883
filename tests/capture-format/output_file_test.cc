#include "capture-format/output_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/support/temporary_directory.h"

namespace ztape {
namespace {

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string noise(std::mt19937& numbers, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(numbers());
  return bytes;
}

Result<void> write(OutputFile& file, const std::string& bytes) {
  std::copy(bytes.begin(), bytes.end(), file.room(bytes.size() + 100));  // more room than is used
  return file.commit(bytes.size());
}

// With the disk's promise to take it, so that it may wait in memory.
Result<void> write_promised(OutputFile& file, const std::string& bytes) {
  if (auto kept = file.keep_room(bytes.size()); !kept) return kept;
  return write(file, bytes);
}

TEST(OutputFile, HoldsWhatWasCommittedHoweverTheWaysOfWritingAlternate) {
  test::TemporaryDirectory folder;
  std::mt19937 any(7);
  const auto source = noise(any, 2'000'000);
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 numbers(seed);
    const auto path = folder.file("out" + std::to_string(seed));
    auto file = OutputFile::create(path, false);
    ASSERT_TRUE(file.has_value()) << file.error().line();
    std::string all;
    for (int i = 0; i < 40; ++i) {
      const auto bytes =
          source.substr(numbers() % 1'000'000, numbers() % 3 == 0 ? numbers() % 600'000 : numbers() % 9'000);
      ASSERT_TRUE((numbers() % 4 == 0 ? write : write_promised)(**file, bytes).has_value());
      all += bytes;
      ASSERT_EQ((*file)->size(), all.size());
      const auto there = (*file)->in_file();
      ASSERT_LE(there, all.size());
      ASSERT_TRUE(content(path).substr(0, there) == all.substr(0, there));
      if (numbers() % 3 != 0) continue;
      ASSERT_TRUE((*file)->flush().has_value());
      ASSERT_EQ((*file)->in_file(), all.size());
      ASSERT_TRUE(content(path) == all);
    }
    ASSERT_TRUE((*file)->close().has_value());
    EXPECT_TRUE(content(path) == all);
  }
}

TEST(OutputFile, WhatIsBuiltInTheRoomMovesWithItWhenItGrows) {
  test::TemporaryDirectory folder;
  std::mt19937 numbers(1);
  auto file = OutputFile::create(folder.file("out"), false);
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE(write(**file, noise(numbers, 5000)).has_value());
  const auto begun = noise(numbers, 1000);
  std::copy(begun.begin(), begun.end(), (*file)->room(begun.size()));
  const auto* const larger = (*file)->room(30'000'000, begun.size());
  EXPECT_TRUE(std::equal(begun.begin(), begun.end(), reinterpret_cast<const char*>(larger)));
}

TEST(OutputFile, WithoutThePromiseABlockIsInTheFileOnReturn) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("out");
  auto file = OutputFile::create(path, false);
  ASSERT_TRUE(file.has_value());
  std::mt19937 numbers(1);
  const auto bytes = noise(numbers, 500'000);
  ASSERT_TRUE(write(**file, bytes).has_value());
  EXPECT_EQ((*file)->in_file(), bytes.size());
  EXPECT_TRUE(content(path) == bytes);
}

// A full disk is a limit on the size here.
class FullDisk : public testing::Test {
 protected:
  FullDisk() {
    getrlimit(RLIMIT_FSIZE, &before_);
    signal_before_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FullDisk() override {
    limit(before_.rlim_cur);
    std::signal(SIGXFSZ, signal_before_);
  }
  void limit(rlim_t bytes) {
    const rlimit changed{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &changed);
  }

 private:
  rlimit before_{};
  void (*signal_before_)(int) = nullptr;
};

TEST_F(FullDisk, ABlockThatFindsNoRoomIsNotInTheFileAndMayBeTriedAgain) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("out");
  std::mt19937 numbers(1);
  const auto kept = noise(numbers, 300'001);
  const auto more = noise(numbers, 400'000);
  limit(500'000);
  auto file = OutputFile::create(path, true);
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(write(**file, kept).has_value());
  const auto failed = write(**file, more);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().line(), path + ": offset 500000: cannot be written: File too large");
  EXPECT_TRUE(content(path) == kept);
  limit(1'000'000);
  EXPECT_TRUE((*file)->commit(more.size()).has_value());  // it is in the room still
  EXPECT_TRUE(content(path) == kept + more);
}

TEST_F(FullDisk, APromiseThatIsNotKeptIsAnErrorForGood) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("out");
  std::mt19937 numbers(1);
  auto file = OutputFile::create(path, true);
  ASSERT_TRUE(file.has_value());
  const auto first = noise(numbers, 100'001);
  ASSERT_TRUE(write_promised(**file, first).has_value());
  ASSERT_TRUE((*file)->flush().has_value());
  const auto bytes = noise(numbers, 700'000);
  ASSERT_TRUE(write_promised(**file, bytes).has_value());
  ASSERT_TRUE((*file)->keep_room(bytes.size()).has_value());
  limit(500'000);
  ASSERT_TRUE(write(**file, bytes).has_value());  // begins the write behind, which fails
  const auto failed = (*file)->flush();
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().line(), path + ": offset 100001: cannot be written: File too large");
  EXPECT_EQ((*file)->in_file(), first.size());
  limit(5'000'000);
  EXPECT_FALSE(write(**file, bytes).has_value());
  EXPECT_FALSE((*file)->flush().has_value());
  (*file)->cut((*file)->in_file());
  EXPECT_TRUE(content(path) == first);
}

TEST(OutputFile, TwoWritersOfOneFileAreRefused) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("out");
  auto first = OutputFile::create(path, false);
  ASSERT_TRUE(first.has_value());
  const auto again = OutputFile::create(path, true);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().line(), path + ": another program is writing it");
  const auto exists = OutputFile::create(path, false);
  ASSERT_FALSE(exists.has_value());
  EXPECT_EQ(exists.error().code, ErrorCode::usage);
}

TEST(OutputFile, SaysWhenTheFileWasDeletedMeanwhile) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("out");
  auto file = OutputFile::create(path, false);
  ASSERT_TRUE(file.has_value());
  (*file)->remove(path);
  EXPECT_FALSE((*file)->close().has_value());
}

}  // namespace
}  // namespace ztape
