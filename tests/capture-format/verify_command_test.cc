// `ztape verify`: its words and exit statuses.
#include <nlohmann/json.hpp>

#include "tests/capture-format/example_records.h"
#include "tests/support/child_process.h"
#include "tests/support/temporary_directory.h"

namespace ztape {
namespace {

class VerifyCommand : public testing::Test {
 protected:
  void SetUp() override {
    sample::write_example(path_);
    bytes_ = sample::read_file(path_);
  }
  test::Finished verify_of(const std::string& content, const std::vector<std::string>& more = {}) {
    sample::write_file(path_, content);
    std::vector<std::string> words{test::ztape(), "verify", "-r", path_};
    words.insert(words.end(), more.begin(), more.end());
    return test::run(words);
  }
  std::string flipped(std::size_t at) const {
    auto content = bytes_;
    content[at] = static_cast<char>(content[at] ^ 1);
    return content;
  }

  test::TemporaryDirectory folder_;
  const std::string path_ = folder_.file("a.ztape");
  std::string bytes_;
};

TEST_F(VerifyCommand, AWholeCaptureIs0) {
  const auto done = verify_of(bytes_);
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.out, path_ +
                          ": whole\n"
                          "  blocks       2\n"
                          "  records      6\n"
                          "  connections  1: 1 proven by count and hash, 0 not closed\n"
                          "  bytes        8\n"
                          "  gaps         none\n");
  EXPECT_EQ(done.err, "");
}

TEST_F(VerifyCommand, ACorruptOneIs1AndSaysWhere) {
  const auto done = verify_of(flipped(0xe5));
  EXPECT_EQ(done.status, 1);
  EXPECT_NE(done.out.find(": corrupt\n"), std::string::npos);
  EXPECT_NE(done.out.find("corrupt: offset 218, 118 bytes: block 1 does not match its checksum\n"), std::string::npos)
      << done.out;
}

TEST_F(VerifyCommand, ATornOneIs3) {
  const auto done = verify_of(bytes_.substr(0, 0x120));
  EXPECT_EQ(done.status, 3);
  EXPECT_NE(done.out.find("torn: offset 134, 154 bytes: the file ends within block 1\n"), std::string::npos)
      << done.out;
}

TEST_F(VerifyCommand, TornAndCorruptIs3) {
  EXPECT_EQ(verify_of(flipped(0x20).substr(0, 0x120)).status, 3);
}

TEST_F(VerifyCommand, WhatIsNoCaptureIs2WithOneLine) {
  const auto text = verify_of("some text\n");
  EXPECT_EQ(text.status, 2);
  EXPECT_EQ(text.out, "");
  EXPECT_EQ(text.err, "ztape verify: " + path_ + ": is not a capture\n");
  const auto missing = test::run({test::ztape(), "verify", "-r", folder_.file("missing")});
  EXPECT_EQ(missing.status, 2);
  EXPECT_EQ(missing.err,
            "ztape verify: " + folder_.file("missing") + ": cannot be opened: No such file or directory\n");
  EXPECT_EQ(test::run({test::ztape(), "verify"}).status, 2);
}

TEST_F(VerifyCommand, JsonSaysTheSame) {
  const auto whole = verify_of(bytes_, {"--json"});
  EXPECT_EQ(whole.status, 0);
  const auto document = nlohmann::json::parse(whole.out);
  EXPECT_EQ(document["whole"], true);
  EXPECT_EQ(document["connections_proven"], 1);
  EXPECT_TRUE(document["damage"].empty());

  const auto hit = verify_of(flipped(0xe5), {"--json"});
  EXPECT_EQ(hit.status, 1);
  const auto damaged = nlohmann::json::parse(hit.out);
  EXPECT_EQ(damaged["corrupt"], true);
  EXPECT_EQ(damaged["damage"][0]["offset"], 218);
  EXPECT_EQ(damaged["damage"][0]["first_block"], 1);
  EXPECT_EQ(damaged["damage"][0]["block_count"], 1);
}

TEST_F(VerifyCommand, StdinIsACaptureToo) {
  const auto done = test::run({"/bin/sh", "-c", test::ztape() + " verify -r - < " + path_});
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.out.substr(0, 13), "stdin: whole\n");
  EXPECT_EQ(test::run({"/bin/sh", "-c", "cat " + path_ + " | " + test::ztape() + " verify -r -"}).status, 0);
}

}  // namespace
}  // namespace ztape
