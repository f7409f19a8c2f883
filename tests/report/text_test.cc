#include "report/text.h"

#include <gtest/gtest.h>

namespace ztape::report {
namespace {

TEST(Text, DurationsKeepWhatMeansSomething) {
  EXPECT_EQ(duration(14'000), "0.014 ms");
  EXPECT_EQ(duration(140'000), "0.14 ms");
  EXPECT_EQ(duration(44'030'000), "44.0 ms");
  EXPECT_EQ(duration(999'400'000), "999 ms");
  EXPECT_EQ(duration(4'022'256'475), "4.02 s");
  EXPECT_EQ(milliseconds(1'204'000'000), "1204");
}

TEST(Text, ByteCountsHaveUnits) {
  EXPECT_EQ(byte_count(0), "0 B");
  EXPECT_EQ(byte_count(1023), "1023 B");
  EXPECT_EQ(byte_count(359'752), "351 KiB");
  EXPECT_EQ(byte_count(5ULL << 30), "5.00 GiB");
}

TEST(Text, CountsAreGrouped) {
  EXPECT_EQ(count(999), "999");
  EXPECT_EQ(count(1'234'567), "1,234,567");
  EXPECT_EQ(counted(1, "call"), "1 call");
  EXPECT_EQ(counted(0, "call"), "0 calls");
}

TEST(Text, FromTheWireCannotSpeakToTheTerminal) {
  EXPECT_EQ(escaped("\x1b[31mred\x07\n"), "\\x1b[31mred\\x07\\x0a");
  EXPECT_EQ(escaped("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(escaped("\xff\xc3(\xed\xa0\x80"), "\\xff\\xc3(\\xed\\xa0\\x80");  // no UTF-8: stray, cut short, a surrogate
  EXPECT_EQ(escaped("\xe2\x80\xae"), "\\xe2\\x80\\xae");                      // turns the direction of text
  EXPECT_EQ(escaped("\xc2\x9b"), "\\xc2\\x9b");                               // C1: begins a control sequence
  EXPECT_EQ(escaped("abcdef", 3), "abc...");
  EXPECT_EQ(escaped("abc", 3), "abc");
}

TEST(Text, TablesAlignByWhatIsSeen) {
  Table table({{"name"}, {"n", Table::Align::right}});
  table.row({"caf\xc3\xa9", "7"});
  table.row({"x", "1,000"});
  EXPECT_EQ(table.text(), "  name      n\n  caf\xc3\xa9      7\n  x     1,000\n");
}

}  // namespace
}  // namespace ztape::report
