// FORMAT.md shows a file byte by byte: it is read out of the page, and is what the writer gives.
#include <algorithm>
#include <cstdio>
#include <sstream>

#include "capture-format/verify.h"
#include "tests/capture-format/example_records.h"
#include "tests/support/temporary_directory.h"

namespace ztape {
namespace {

// The last fenced block of the page: lines "0010  db 29 ...  meaning"; others are headings.
std::string example_in_page() {
  std::istringstream page(sample::read_file(ZTAPE_SOURCE_DIR "/capture-format/FORMAT.md"));
  std::string line;
  std::string bytes;
  bool fenced = false;
  while (std::getline(page, line)) {
    if (line.starts_with("```")) {
      fenced = !fenced;
      continue;
    }
    if (!fenced || line.starts_with(" ")) continue;
    EXPECT_EQ(std::stoul(line.substr(0, 4), nullptr, 16), bytes.size()) << line;
    for (std::size_t at = 6; at + 1 < line.size() && line[at] != ' '; at += 3) {
      bytes.push_back(static_cast<char>(std::stoul(line.substr(at, 2), nullptr, 16)));
    }
  }
  return bytes;
}

TEST(FormatPage, TheExampleReadsAsThePageSays) {
  const auto bytes = example_in_page();
  ASSERT_EQ(bytes.size(), 477u);
  auto reader = CaptureReader::open_bytes(bytes, "FORMAT.md");
  ASSERT_TRUE(reader.has_value()) << reader.error().line();
  std::string said[2];
  std::vector<capture::Record::KindCase> kinds;
  while (const auto* record = (*reader)->next()) {
    kinds.push_back(record->kind_case());
    if (record->has_chunk()) said[record->chunk().direction()] += record->chunk().bytes();
  }
  using capture::Record;
  EXPECT_EQ(kinds, (std::vector{Record::kCaptureStart, Record::kConnectionOpen, Record::kChunk, Record::kChunk,
                                Record::kChunk, Record::kConnectionClose}));
  EXPECT_EQ(said[0], "ping");
  EXPECT_EQ(said[1], "pong");

  auto again = CaptureReader::open_bytes(bytes, "FORMAT.md");
  const auto report = verify(**again);
  EXPECT_FALSE(report.torn() || report.corrupt());
  EXPECT_EQ(report.connections_proven, 1u);
}

TEST(FormatPage, TheExampleIsWhatTheWriterGives) {
  test::TemporaryDirectory folder;
  sample::write_example(folder.file("example.ztape"));
  EXPECT_TRUE(sample::read_file(folder.file("example.ztape")) == example_in_page());
}

}  // namespace
}  // namespace ztape
