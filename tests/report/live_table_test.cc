// The live table as text, at several windows.
#include "report/live_table.h"

#include <gtest/gtest.h>

#include "report/text.h"

namespace ztape::report {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
const std::string kService = "/cash.z.wallet.sdk.rpc.CompactTxStreamer/";

class LiveTable : public testing::Test {
 protected:
  LiveTable() {
    facts_.time = {5 * kSecond};
    facts_.uptime_ns = 133 * kSecond;
    facts_.open_connections = 12;
    facts_.counts.connections = 48;
    facts_.counts.bytes[0] = 36'805'018;
    facts_.counts.bytes[1] = 4'509'715'660;
    facts_.recorder.queue_limit_bytes = 16 * 1024 * 1024;
    facts_.loop_turns.add(200'000);
    facts_.loop_lag_now_ns = 200'000;
    facts_.loop_lag_max_ns = 3'100'000;
    snapshot_.file = "sync.ztape";
    snapshot_.files = 1;
    snapshot_.file_bytes = 3'328'599'654;
    snapshot_.compression_level = -7;
    method("GetBlockRange",
           {.calls = 1204, .in_flight = 2, .p50_ns = 44'000'000, .p95_ns = 48'100'000, .max_ns = 1'204'000'000});
    method("GetTreeState", {.calls = 310, .errors = 3, .p50_ns = 140'000, .p95_ns = 310'000, .max_ns = 2'200'000});
    method("Ping", {.calls = 1, .max_ns = 90'000});
  }

  void method(const std::string& name, proxy::MethodFigures figures) {
    figures.path = kService + name;
    snapshot_.calls += figures.calls;
    snapshot_.methods.push_back(std::move(figures));
  }

  std::vector<std::string> draw(const LiveTableOptions& options) {
    facts_.recorder.of_thread = std::make_shared<const proxy::RecorderSnapshot>(snapshot_);
    rates_.add(facts_);
    auto lines = live_table(facts_, rates_, options);
    EXPECT_LT(lines.size(), options.rows);
    if (!options.color) {
      for (const auto& line : lines) EXPECT_LE(text_width(line), options.columns) << "'" << line << "'";
    }
    return lines;
  }

  proxy::LiveFacts facts_;
  proxy::RecorderSnapshot snapshot_;
  LiveRates rates_;
};

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  return all;
}

TEST_F(LiveTable, SaysInAnOrdinaryWindowWhatThereIsToSay) {
  EXPECT_EQ(joined(draw({.columns = 80, .rows = 24})),
            " up 2:13   connections 12 open, 48 in all   calls 1,515   lost nothing\n"
            " to indexer 0 B/s (35.1 MiB)   to wallets 0 B/s (4.20 GiB)\n"
            " loop lag 0.20 ms (max 3.10 ms)\n"
            " sync.ztape 3.10 GiB   queue 0 B of 16.0 MiB   zstd -7\n"
            "\n"
            " method             calls     /s  open errors cancelled  p50 ms  p95 ms  max ms\n"
            " GetBlockRange      1,204      -     2      0         0    44.0    48.1    1204\n"
            " GetTreeState         310      -     0      3         0    0.14    0.31    2.20\n"
            " Ping                   1      -     0      0         0       -       -   0.090\n");
}

TEST_F(LiveTable, AWideWindowHasMoreColumnsAndANarrowOneFewer) {
  const auto head = [&](std::size_t columns) {
    for (const auto& line : draw({.columns = columns, .rows = 24})) {
      if (line.starts_with(" method")) return line;
    }
    return std::string();
  };
  EXPECT_NE(head(120).find("cancelled"), std::string::npos);
  EXPECT_EQ(head(70).find("cancelled"), std::string::npos);
  const auto narrow = head(50);
  EXPECT_EQ(narrow.find("max ms"), std::string::npos);
  EXPECT_NE(narrow.find("errors"), std::string::npos);
  EXPECT_NE(narrow.find("calls"), std::string::npos);
}

TEST_F(LiveTable, ASmallWindowLeavesOutWhatMattersLessAndHasMethodsStill) {
  EXPECT_EQ(joined(draw({.columns = 40, .rows = 10})),
            " up 2:13\n"
            " connections 12 open, 48 in all\n"
            " calls 1,515   lost nothing\n"
            "\n"
            " method             calls errors  p50 ms\n"
            " GetBlockRange      1,204      0    44.0\n"
            " GetTreeState         310      3    0.14\n"
            " Ping                   1      0       -\n");
}

TEST_F(LiveTable, WhatIsWrongStandsThereAsLongAsThereIsALine) {
  facts_.recorder.loss = {.chunks = 12, .bytes = 3'145'728, .gaps = 1};
  EXPECT_EQ(joined(draw({.columns = 40, .rows = 2})), " lost 3.00 MiB in 12 chunks\n");
  snapshot_.error = "a.ztape: no space left on device";
  EXPECT_EQ(joined(draw({.columns = 60, .rows = 3})),
            " NOT RECORDING: a.ztape: no space left on device\n"
            " connections 12 open, 48 in all   lost 3.00 MiB in 12 chunks\n");
}

TEST_F(LiveTable, NamesThePresentFileAndCountsThem) {
  snapshot_.file = "sync.000003.ztape";
  snapshot_.files = 3;
  const auto all = joined(draw({.columns = 80, .rows = 24}));
  EXPECT_NE(all.find(" sync.000003.ztape 3.10 GiB in 3 files "), std::string::npos) << all;
}

TEST_F(LiveTable, FitsEveryWindow) {
  method(std::string(150, 'x'),
         {.calls = 123'456'789'012, .in_flight = 1'234'567, .errors = 99'999'999, .max_ns = INT64_MAX / 2});
  snapshot_.error = "a.ztape: no space left on device; a long reason that goes on and on and on and on and on";
  facts_.recorder.loss = {.chunks = 1'000'000, .bytes = 1'000'000'000, .records = 5};
  facts_.counts.upstream_failures = 7;
  facts_.counts.holds = 3;
  for (std::size_t columns = 1; columns <= 200; ++columns) {
    for (const std::size_t rows : {1, 2, 3, 5, 8, 9, 10, 24, 100}) draw({.columns = columns, .rows = rows});
  }
}

TEST_F(LiveTable, MoreMethodsThanRowsLeaveTheLeastCalledOut) {
  for (int i = 0; i < 50; ++i) method("Method" + std::to_string(100 + i), {.calls = static_cast<uint64_t>(2 + i)});
  const auto lines = draw({.columns = 80, .rows = 14});
  ASSERT_EQ(lines.size(), 13u);
  EXPECT_EQ(lines.back(), " and 47 more methods with 1,128 calls");  // 1 + 2 + 3 + ... + 47
  const auto all = joined(lines);
  EXPECT_NE(all.find(" GetBlockRange "), std::string::npos);
  EXPECT_NE(all.find(" Method149 "), std::string::npos);
  EXPECT_EQ(all.find(" Ping "), std::string::npos);
  EXPECT_LT(all.find(" GetTreeState "), all.find(" Method149 "));  // by name, so that rows do not jump about
}

TEST_F(LiveTable, LossAndWhatGapsHidAreThere) {
  facts_.recorder.loss = {.chunks = 12, .bytes = 3'145'728, .gaps = 1};
  snapshot_.methods[0].unseen = 4;
  const auto plain = joined(draw({.columns = 100, .rows = 24}));
  EXPECT_NE(plain.find("lost 3.00 MiB in 12 chunks"), std::string::npos) << plain;
  EXPECT_NE(plain.find("unseen"), std::string::npos) << plain;
  const auto colored = joined(draw({.columns = 100, .rows = 24, .color = true}));
  EXPECT_NE(colored.find("\x1b[1;31m3.00 MiB in 12 chunks\x1b[0m"), std::string::npos) << colored;
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
}

TEST_F(LiveTable, RatesAreThoseOfTheLastSeconds) {
  facts_.recorder.of_thread = std::make_shared<const proxy::RecorderSnapshot>(snapshot_);
  rates_.add(facts_);
  facts_.time.ns += 2 * kSecond;
  facts_.counts.bytes[1] += 4 * 1024 * 1024;
  snapshot_.methods[0].calls += 300;
  snapshot_.calls += 300;
  auto all = joined(draw({.columns = 80, .rows = 24}));
  EXPECT_NE(all.find("to wallets 2.00 MiB/s"), std::string::npos) << all;
  EXPECT_NE(all.find("calls 1,815 (150/s)"), std::string::npos) << all;
  for (int i = 0; i < 3; ++i) {
    facts_.time.ns += 1 * kSecond;
    all = joined(draw({.columns = 80, .rows = 24}));
  }
  EXPECT_NE(all.find("to wallets 0 B/s"), std::string::npos) << all;
}

TEST_F(LiveTable, SaysThatItWaitsWhereNothingCameYet) {
  snapshot_ = {};
  EXPECT_EQ(draw({.columns = 80, .rows = 24}).back(), " waiting for the first call");
}

}  // namespace
}  // namespace ztape::report
