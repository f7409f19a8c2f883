#include "cli/units.h"

#include <gtest/gtest.h>

namespace ztape::cli {
namespace {

TEST(Units, SizesTakeUnits) {
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("65536"), 65536u);
  EXPECT_EQ(parse_bytes("64K"), 65536u);
  EXPECT_EQ(parse_bytes("64KiB"), 65536u);
  EXPECT_EQ(parse_bytes("64M"), 67108864u);
  EXPECT_EQ(parse_bytes("1.5G"), 1610612736u);
  for (const char* bad : {"", "K", "-1", "64m", "64MB", "1 K", " 1", "1e3", "0x10", "nan", "inf", "99999999999G"}) {
    EXPECT_FALSE(parse_bytes(bad)) << bad;
  }
}

TEST(Units, DurationsNeedAUnit) {
  EXPECT_EQ(parse_duration("0"), 0);
  EXPECT_EQ(parse_duration("40ms"), 40'000'000);
  EXPECT_EQ(parse_duration("2s"), 2'000'000'000);
  EXPECT_EQ(parse_duration("1.5s"), 1'500'000'000);
  EXPECT_EQ(parse_duration("250us"), 250'000);
  EXPECT_EQ(parse_duration("100ns"), 100);
  EXPECT_EQ(parse_duration("10m"), 600'000'000'000);
  EXPECT_EQ(parse_duration("1h"), 3'600'000'000'000);
  for (const char* bad : {"", "5", "ms", "-1s", "1 s", "1sec", "s1", "1e9s", "9999999999h", "2562047h"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
}

TEST(Units, TimesAreRfc3339WithAZone) {
  EXPECT_EQ(parse_time("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(parse_time("2026-12-01T03:12:45Z"), 1796094765'000'000'000);
  EXPECT_EQ(parse_time("2026-12-01 04:12:45.5+01:00"), 1796094765'500'000'000);
  EXPECT_EQ(parse_time("2026-11-30t22:12:45.000000001-05:00"), 1796094765'000'000'001);
  for (const char* bad :
       {"", "2026-12-01", "2026-12-01T03:12:45", "2026-12-01T03:12Z", "2026-13-01T03:12:45Z", "2026-02-30T03:12:45Z",
        "2026-12-01T24:12:45Z", "2026-12-01T03:12:45.Z", "2026-12-01T03:12:45Zx", "2026-12-01T03:12:45+1:00",
        "-026-12-01T03:12:45Z", "26-12-01T03:12:45Z"}) {
    EXPECT_FALSE(parse_time(bad)) << bad;
  }
}

TEST(Units, AnErrorSaysWhatIsWrongAndHowToWriteIt) {
  EXPECT_EQ(parse_bytes("64Q").error().line(), "'64Q' is not a size: write 65536, 64K, 64M or 1G");
  EXPECT_EQ(parse_duration("5").error().line(), "'5' is not a duration: write 40ms, 2s or 10m");
}

}  // namespace
}  // namespace ztape::cli
