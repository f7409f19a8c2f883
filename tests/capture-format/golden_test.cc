// Files that older versions wrote stay readable for ever (tests/golden/README.md).
#include <array>
#include <map>

#include "capture-format/verify.h"
#include "tests/capture-format/sample.h"
#include "tests/support/fixture.h"

namespace ztape {
namespace {

TEST(Golden, ACaptureOfFormatVersion1HasTheBytesThatWereRecorded) {
  const std::string path = ZTAPE_TESTS_DIR "/golden/v1.ztape";
  const auto report = verify(path);
  ASSERT_TRUE(report.has_value()) << report.error().line();
  EXPECT_TRUE(report->damage.empty());
  EXPECT_TRUE(report->faults.empty());
  EXPECT_EQ(report->connections_proven, 3u);

  std::map<ConnectionId, std::array<std::string, 2>> carried;
  uint64_t chunks = 0;
  auto reader = CaptureReader::open(path);
  while (const auto* record = (*reader)->next()) {
    if (!record->has_chunk()) continue;
    carried[record->chunk().connection()][record->chunk().direction()] += record->chunk().bytes();
    ++chunks;
  }
  uint64_t expected_chunks = 0;
  for (const auto& connection : test::load_fixture("lightwalletd-grpcurl")) {
    if (connection.number > 3) continue;
    const auto& bytes = carried[static_cast<ConnectionId>(connection.number)];
    EXPECT_TRUE(bytes[0] == connection.bytes[0] && bytes[1] == connection.bytes[1]) << connection.number;
    expected_chunks += connection.chunks.size();
  }
  EXPECT_EQ(chunks, expected_chunks);
}

TEST(Golden, ATornCaptureOfFormatVersion1GivesItsWholeBlocks) {
  const auto report = verify(ZTAPE_TESTS_DIR "/golden/v1-torn.ztape");
  ASSERT_TRUE(report.has_value()) << report.error().line();
  EXPECT_TRUE(report->torn());
  EXPECT_FALSE(report->corrupt());
  EXPECT_EQ(report->connections_proven, 1u);
  EXPECT_EQ(report->blocks, 4u);
}

}  // namespace
}  // namespace ztape
