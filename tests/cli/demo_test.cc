// ztape demo as a user runs it, and the captures inside it. What it finds is checked; how long anything takes is not.
#include <gtest/gtest.h>

#include "tests/support/child_process.h"
#include "tests/support/fixture.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

Finished run_ztape(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), ztape());
  return run(arguments);
}

TEST(Demo, ItsCapturesAreTheRecordedFixtures) {
  for (const char* name : {"zaino-zingo", "ztreamer-zingo"}) {
    TemporaryDirectory directory;
    const std::string capture = std::string(ZTAPE_SOURCE_DIR) + "/cli/demo_captures/" + name + ".ztape";
    EXPECT_EQ(run_ztape({"verify", "-r", capture}).status, 0);
    ASSERT_EQ(run_ztape({"export", "-r", capture, "-o", directory.file("raw")}).status, 0);
    for (const char* file :
         {"/connection1.client_to_server", "/connection1.server_to_client", "/connection1.chunks.tsv"}) {
      EXPECT_EQ(read_file(directory.file("raw") + file), read_file(fixture_path(name) + file)) << file;
    }
  }
}

TEST(Demo, FindsTheOneDifferenceAndLosesNothing) {
  const auto demo = run_ztape({"demo", "--rounds", "1"});
  ASSERT_EQ(demo.status, 0) << demo.err;
  for (const char* text :
       {"76 calls of 8 methods", "Lost: nothing.", "answers 75 of the 76 calls", "1 differs:", "GetLightdInfo",
        "ZingoLabs ZainoD", "GetTransaction", "the whole session", "ztape replay -r sync.ztape --target"}) {
    EXPECT_NE(demo.out.find(text), std::string::npos) << text << "\n" << demo.out;
  }
  // The fields that tests/fixtures/differences.json names, and no others.
  for (const char* field : {"version", "vendor", "buildDate", "buildUser", "zcashdBuild", "zcashdSubversion",
                            "upgradeName", "upgradeHeight"}) {
    EXPECT_NE(demo.out.find(std::string("\n  ") + field + " "), std::string::npos) << field;
  }
}

}  // namespace
}  // namespace ztape::test
