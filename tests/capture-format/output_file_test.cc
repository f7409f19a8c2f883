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

Result<void> write(OutputFile& file, const std::string& bytes, bool bulk) {
  std::copy(bytes.begin(), bytes.end(), file.room(bytes.size() + 100));  // more room than is used
  return file.commit(bytes.size(), bulk);
}

TEST(OutputFile, HoldsWhatWasCommittedHoweverTheWaysOfWritingAlternate) {
  test::TemporaryDirectory folder;
  std::mt19937 any(7);
  const auto source = noise(any, 2'000'000);
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 numbers(seed);
    const auto path = folder.file("out" + std::to_string(seed));
    auto file = OutputFile::create(path, false);
    ASSERT_TRUE(file.has_value()) << file.error().line();
    std::string all;
    for (int i = 0; i < 40; ++i) {
      const auto bytes =
          source.substr(numbers() % 1'000'000, numbers() % 3 == 0 ? numbers() % 600'000 : numbers() % 9'000);
      const bool bulk = numbers() % 2 == 0;
      ASSERT_TRUE(write(**file, bytes, bulk).has_value());
      all += bytes;
      ASSERT_EQ((*file)->size(), all.size());
      ASSERT_TRUE(content(path) == all);
    }
    ASSERT_TRUE((*file)->close().has_value());
    EXPECT_TRUE(content(path) == all);
  }
}

TEST(OutputFile, ABlockIsInTheFileToItsLastByteWhereSectorsWentDirect) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("out");
  auto file = OutputFile::create(path, false);
  ASSERT_TRUE(file.has_value());
  std::mt19937 numbers(1);
  const auto bytes = noise(numbers, 500'000);
  ASSERT_TRUE(write(**file, bytes, true).has_value());
  EXPECT_TRUE(content(path) == bytes);
}

TEST(OutputFile, EndsWhereItEndedBeforeAFailedWrite) {
  test::TemporaryDirectory folder;
  const auto path = folder.file("out");
  std::mt19937 numbers(1);
  const auto kept = noise(numbers, 300'001);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto* const signal_before = std::signal(SIGXFSZ, SIG_IGN);
  // The disk is full within the sectors, or behind the last one of them.
  constexpr std::size_t kSectorBytes = 4096;
  constexpr std::size_t kInSectors = 122 * kSectorBytes;
  struct Case {
    rlim_t limit;
    std::size_t size;
    bool bulk;
  };
  for (const auto& [limit, size, bulk] : {Case{500'000, 400'000, true}, Case{500'000, 400'000, false},
                                          Case{kInSectors, kInSectors + 100 - 300'001, true}}) {
    SCOPED_TRACE(size);
    const rlimit small{.rlim_cur = limit, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    auto file = OutputFile::create(path, true);
    ASSERT_TRUE(file.has_value());
    EXPECT_TRUE(write(**file, kept, bulk).has_value());
    const auto failed = write(**file, noise(numbers, size), bulk);
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().line(), path + ": offset 300001: cannot be written: File too large");
    EXPECT_TRUE(content(path) == kept);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, signal_before);
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
