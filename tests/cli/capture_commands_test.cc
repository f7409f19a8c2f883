// import, show, export and verify on the recorded fixtures, as a user runs them.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <sstream>

#include "capture-format/writer.h"
#include "tests/support/calls.h"
#include "tests/support/child_process.h"
#include "tests/support/fixture.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

Finished run_ztape(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), ztape());
  return run(arguments);
}

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

class FixtureCommands : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto imported = run_ztape({"import", fixture_path(GetParam()), "-w", capture_});
    ASSERT_EQ(imported.status, 0) << imported.err;
  }
  TemporaryDirectory directory_;
  std::string capture_ = directory_.path() + "/fixture.ztape";
};

TEST_P(FixtureCommands, ExportGivesBackTheImportedBytesAndReads) {
  const auto exported = run_ztape({"export", "-r", capture_, "--format", "raw", "-o", directory_.path() + "/raw"});
  ASSERT_EQ(exported.status, 0) << exported.err;
  for (const auto& connection : load_fixture(GetParam())) {
    const std::string stem = "/connection" + std::to_string(connection.number);
    for (const char* suffix : {".client_to_server", ".server_to_client", ".chunks.tsv"}) {
      EXPECT_EQ(read_file(directory_.path() + "/raw" + stem + suffix),
                read_file(fixture_path(GetParam()) + stem + suffix))
          << suffix;
    }
  }
}

TEST_P(FixtureCommands, ShowCallsAgreesWithTheIndependentDecoder) {
  const auto shown = run_ztape({"show", "-r", capture_, "--calls", "--json"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  const auto rows = json_lines(shown.out);
  std::size_t at = 0;
  for (const auto& connection : load_fixture(GetParam())) {
    for (const auto& expected : connection.calls) {
      ASSERT_LT(at, rows.size());
      const auto& row = rows[at++];
      EXPECT_EQ(row["connection"], connection.number);
      for (const auto& [field, value] : expected.items()) EXPECT_EQ(row[field], value) << field << " of " << row;
    }
  }
  EXPECT_EQ(at, rows.size());
}

TEST_P(FixtureCommands, ShowFramesCountsWhatTheIndependentDecoderCounts) {
  const auto shown = run_ztape({"show", "-r", capture_, "--frames", "--json"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  std::map<std::pair<int, std::string>, int> counts;
  for (const auto& row : json_lines(shown.out)) {
    const std::string side = row["direction"] == "client_to_server" ? "c2s " : "s2c ";
    ++counts[{row["connection"].get<int>(), side + row["type"].get<std::string>()}];
  }
  for (const auto& connection : load_fixture(GetParam())) {
    const auto file = fixture_path(GetParam()) + "/connection" + std::to_string(connection.number) + ".frames.json";
    for (const auto& [what, count] : nlohmann::json::parse(read_file(file))["frames"].items()) {
      EXPECT_EQ((counts[{connection.number, what}]), count.get<int>()) << what;
    }
  }
}

TEST_P(FixtureCommands, VerifyProvesTheImport) {
  const auto verified = run_ztape({"verify", "-r", capture_});
  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
}

std::string test_name(const testing::TestParamInfo<std::string>& fixture) {
  std::string text = fixture.param;
  std::ranges::replace(text, '-', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(All, FixtureCommands, testing::ValuesIn(fixture_names()), test_name);

TEST(Show, SummaryNamesConnectionsMethodsAndLoss) {
  TemporaryDirectory directory;
  const auto capture = directory.path() + "/zaino.ztape";
  ASSERT_EQ(run_ztape({"import", fixture_path("zaino-zingo"), "-w", capture}).status, 0);
  const auto page = run_ztape({"show", "-r", capture});
  EXPECT_EQ(page.status, 0);
  for (const char* text : {"1 connection, 76 calls", "GetTransaction", "40 OK", "client reset CANCEL",
                           "2.41 s of the 4.02 s", "Lost: nothing."}) {
    EXPECT_NE(page.out.find(text), std::string::npos) << text << "\n" << page.out;
  }
  const auto json = nlohmann::json::parse(run_ztape({"show", "-r", capture, "--json"}).out);
  EXPECT_EQ(json["connections"][0]["calls"], 76);
  EXPECT_EQ(json["connections"][0]["silent_gaps_ns"], 2414357151);
}

TEST(Show, FiltersByMethodAndStream) {
  TemporaryDirectory directory;
  const auto capture = directory.path() + "/zaino.ztape";
  ASSERT_EQ(run_ztape({"import", fixture_path("zaino-zingo"), "-w", capture}).status, 0);
  EXPECT_EQ(
      json_lines(run_ztape({"show", "-r", capture, "--calls", "--json", "--method", "GetTransaction"}).out).size(),
      40U);
  EXPECT_EQ(json_lines(run_ztape({"show", "-r", capture, "--calls", "--json", "--stream", "5"}).out).size(), 1U);
}

TEST(Captures, AreMadeForTheirOwnerOnlyAndNeverOverwrittenUnasked) {
  TemporaryDirectory directory;
  const auto capture = directory.path() + "/a.ztape";
  ASSERT_EQ(run_ztape({"import", fixture_path("zebra-ghz"), "-w", capture}).status, 0);
  struct stat status{};
  ASSERT_EQ(stat(capture.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  const auto again = run_ztape({"import", fixture_path("zebra-ghz"), "-w", capture});
  EXPECT_EQ(again.status, 2);
  EXPECT_NE(again.err.find(capture), std::string::npos) << again.err;
  EXPECT_EQ(run_ztape({"import", fixture_path("zebra-ghz"), "-w", capture, "--force"}).status, 0);
}

// A capture whose first chunk is lost, without a Gap that says so.
TEST(Show, NamesBytesThatNoRecordExplains) {
  TemporaryDirectory directory;
  const auto file = directory.file("hole.ztape");
  auto writer = CaptureWriter::create(file, capture::CaptureStart());
  ASSERT_TRUE(writer);
  capture::Record open;
  open.mutable_connection_open()->set_connection(1);
  ASSERT_TRUE((*writer)->append(open));
  const std::string text = "late";
  ASSERT_TRUE((*writer)->append_chunk(
      {.connection = 1, .offset = 80, .bytes = {reinterpret_cast<const uint8_t*>(text.data()), text.size()}}));
  ASSERT_TRUE((*writer)->finish());
  const auto page = run_ztape({"show", "-r", file});
  EXPECT_EQ(page.status, 3);
  EXPECT_NE(page.out.find("Missing: 80 B of connection 1"), std::string::npos) << page.out;
  EXPECT_EQ(page.out.find("Lost: nothing"), std::string::npos) << page.out;
}

// Each is one clear line on stderr and the documented exit status.
TEST(BadInput, GetsOneLineAndItsStatus) {
  TemporaryDirectory directory;
  const auto text = directory.path() + "/text";
  std::ofstream(text) << "this is not a capture\n";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"frobnicate"}, "no command 'frobnicate'"},
      {{"show", "--bogus"}, "bogus"},
      {{"show"}, "-r FILE"},
      {{"show", "-r", directory.path() + "/missing"}, "No such file or directory"},
      {{"show", "-r", text}, "not a capture"},
      {{"verify", "-r", text}, "not a capture"},
      {{"export", "-r", text, "-o", directory.path() + "/x"}, "not a capture"},
      {{"export", "-r", text, "-o", directory.path() + "/x", "--format", "xml"}, "'xml' is not known"},
      {{"import", directory.path() + "/nowhere", "-w", directory.path() + "/y"}, "nowhere"},
      {{"import", directory.path(), "-w", directory.path() + "/y"}, "no connectionN.chunks.tsv"},
      {{"show", "-r", text, "--stream", "many"}, "--stream: "},
      {{"show", "-r", text, "--stream=many"}, "--stream: "},
      {{"show", "-r", text, "--calls=false"}, "--calls takes no value"},
      {{"show", "-r", ""}, "--read: the name is empty"},
      {{"import", directory.path(), "-w", text, "--force=false"}, "--force takes no value"},
      {{"import", fixture_path("zebra-ghz"), "-w", directory.path() + "/y", "--recorded-at", "9000000001"},
       "--recorded-at"},
      {{"replay", "-r", text, "--target", "a=127.0.0.1:0"}, "port 0"},
      {{"demo", "--rounds", "0"}, "--rounds"},
      {{"replay", "-r", text, "--target", "a="}, "--target a="},
      {{"show", "-r", text, "stray"}, "'stray'"},
  };
  for (const auto& [arguments, message] : cases) {
    const auto outcome = run_ztape(arguments);
    EXPECT_EQ(outcome.status, 2) << message;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Results, ThatStdoutDoesNotTakeAreAnError) {
  TemporaryDirectory directory;
  const auto capture = directory.path() + "/a.ztape";
  ASSERT_EQ(run_ztape({"import", fixture_path("zebra-ghz"), "-w", capture}).status, 0);
  const auto shell = [&](const std::string& to) {
    return run({"/bin/sh", "-c", "'" + ztape() + "' show --frames --json -r '" + capture + "' " + to});
  };
  for (const char* to : {">/dev/full", ">&-"}) {
    const auto shown = shell(to);
    EXPECT_EQ(shown.status, 2) << to;
    EXPECT_NE(shown.err.find("stdout: cannot be written"), std::string::npos) << shown.err;
  }
  EXPECT_EQ(shell("| head -1").status, 0);
}

TEST(Captures, AreNotWrittenByTwoAtOnce) {
  TemporaryDirectory directory;
  const auto capture = directory.path() + "/a.ztape";
  ChildProcess proxy(
      {ztape(), "proxy", "--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "-w", capture, "--quiet"});
  proxy.line();
  const auto second = run_ztape({"import", fixture_path("zebra-ghz"), "-w", capture, "--force"});
  EXPECT_EQ(second.status, 2);
  EXPECT_NE(second.err.find("another program is writing it"), std::string::npos) << second.err;
  proxy.signal(SIGINT);
  EXPECT_EQ(proxy.wait(), 0);
  EXPECT_EQ(run_ztape({"verify", "-r", capture}).status, 0);
}

TEST(Captures, ThatAreDeletedWhileTheyAreRecordedAreLostAndSoSaid) {
  TemporaryDirectory directory;
  const auto capture = directory.path() + "/a.ztape";
  ChildProcess proxy({ztape(), "proxy", "--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "-w", capture});
  proxy.line();
  ASSERT_EQ(unlink(capture.c_str()), 0);
  proxy.signal(SIGINT);
  EXPECT_EQ(proxy.wait(), 3);
  EXPECT_NE(proxy.stderr_text().find("was deleted"), std::string::npos) << proxy.stderr_text();
}

TEST(Proxy, DoesNotConnectToItself) {
  TemporaryDirectory directory;
  ChildProcess first(
      {ztape(), "proxy", "--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "-w", directory.path() + "/a.ztape"});
  // A port that was free a moment ago: the first proxy's, once it has gone.
  const auto line = first.line();
  const auto address = line.substr(13, line.find(',') - 13);
  first.signal(SIGINT);
  ASSERT_EQ(first.wait(), 0);
  for (const auto& listen : {address, address.substr(address.find(':'))}) {
    const auto second =
        run_ztape({"proxy", "--upstream", address, "--listen", listen, "-w", directory.path() + "/b.ztape"});
    EXPECT_EQ(second.status, 2);
    EXPECT_NE(second.err.find("this proxy itself"), std::string::npos) << second.err;
  }
}

TEST(Help, IsThereOnEveryLevelWithAnExample) {
  const auto top = run_ztape({"--help"});
  EXPECT_EQ(top.status, 0);
  for (const char* command : {"show", "verify", "export", "import"}) {
    EXPECT_NE(top.out.find(command), std::string::npos);
    const auto help = run_ztape({command, "--help"});
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_NE(help.out.find("Example:\n  ztape"), std::string::npos) << help.out;
  }
}

}  // namespace
}  // namespace ztape::test
