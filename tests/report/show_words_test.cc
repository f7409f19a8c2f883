// What `ztape show` says of calls and messages, and which of them it picks.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "proto/method_table.h"
#include "proto/service.pb.h"
#include "report/call_filter.h"
#include "report/call_groups.h"
#include "report/call_words.h"
#include "report/message_words.h"
#include "report/text.h"

namespace ztape::report {
namespace {

http2::Call call(const std::string& method, int64_t start_ms, int64_t took_ms, int status = 0,
                 const std::string& agent = "tonic/1") {
  http2::Call made;
  made.stream = static_cast<uint32_t>(start_ms * 2 + 1);
  made.content = http2::Content::grpc;
  made.path = "/cash.z.wallet.sdk.rpc.CompactTxStreamer/" + method;
  made.request_headers = {{":method", "POST"}, {":path", made.path}, {"user-agent", agent}};
  made.start_ns = start_ms * 1'000'000;
  made.end_ns = took_ms < 0 ? -1 : made.start_ns + took_ms * 1'000'000;
  made.ended_by = took_ms < 0 ? http2::EndedBy::still_open : http2::EndedBy::trailers;
  if (took_ms >= 0) made.grpc_status = status;
  made.http_status = 200;
  made.request_message_count = 1;
  made.response_message_count = 2;
  made.response_bytes = 100;
  return made;
}

http2::RecordedCapture capture_of(std::vector<http2::Call> calls) {
  http2::RecordedCapture capture;
  capture.start.mutable_opened()->set_realtime_unix_ns(1796094765'000'000'000);
  http2::RecordedConnection connection;
  connection.id = 1;
  connection.last_ns = 1'000'000'000;
  connection.calls = std::move(calls);
  capture.connections.push_back(std::move(connection));
  return capture;
}

std::vector<int64_t> picked_ms(const CallFilter& filter) {
  auto capture = capture_of({call("GetBlock", 10, 5), call("GetBlock", 20, 50), call("GetTransaction", 30, 41),
                             call("GetMempoolStream", 40, -1)});
  FilteredBy(filter, capture.start).apply(capture);
  std::vector<int64_t> starts;
  for (const auto& connection : capture.connections) {
    for (const auto& each : connection.calls) starts.push_back(each.start_ns / 1'000'000);
  }
  return starts;
}

using Starts = std::vector<int64_t>;

TEST(Filter, PicksByMethodDurationStreamAndConnection) {
  EXPECT_EQ(picked_ms({}), (Starts{10, 20, 30, 40}));
  EXPECT_EQ(picked_ms({.methods = {"GetBlock"}}), (Starts{10, 20}));
  EXPECT_EQ(picked_ms({.methods = {"GetTransaction", "/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetMempoolStream"}}),
            (Starts{30, 40}));
  EXPECT_EQ(picked_ms({.slower_than_ns = 41'000'000}), (Starts{20, 40})) << "one still open counts so far";
  EXPECT_EQ(picked_ms({.methods = {"GetBlock"}, .slower_than_ns = 41'000'000}), (Starts{20}));
  EXPECT_EQ(picked_ms({.streams = {61}}), (Starts{30}));
  EXPECT_EQ(picked_ms({.connections = {2}}), Starts{});
}

TEST(Filter, PicksByStartOnEitherClockAndUntilIsOutside) {
  const auto relative = [](int64_t ms) { return Moment{.absolute = false, .ns = ms * 1'000'000}; };
  const auto absolute = [](int64_t ms) {
    return Moment{.absolute = true, .ns = 1796094765'000'000'000 + ms * 1'000'000};
  };
  EXPECT_EQ(picked_ms({.since = relative(20)}), (Starts{20, 30, 40}));
  EXPECT_EQ(picked_ms({.until = relative(20)}), (Starts{10}));
  EXPECT_EQ(picked_ms({.since = absolute(20), .until = absolute(40)}), (Starts{20, 30}));
}

TEST(Groups, SumUpAndTakeTheNearestRank) {
  CallGroups groups({GroupKey::user_agent, GroupKey::method});
  for (int i = 1; i <= 20; ++i) groups.add(call("GetBlock", i, i, i == 7 ? 13 : 0));
  groups.add(call("GetTaddressTxids", 30, 3, 0, ""));
  const auto capture = capture_of({});
  const auto rows = nlohmann::json::parse(groups.json(capture.start));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["user_agent"], "tonic/1");
  EXPECT_EQ(rows[0]["method"], "GetBlock");
  EXPECT_EQ(rows[0]["deprecated"], false);
  EXPECT_EQ(rows[0]["calls"], 20);
  EXPECT_EQ(rows[0]["errors"], 1);
  EXPECT_EQ(rows[0]["messages"], 60);
  EXPECT_EQ(rows[0]["response_bytes"], 2000);
  EXPECT_EQ(rows[0]["p50_ns"], 10'000'000);
  EXPECT_EQ(rows[0]["p95_ns"], 19'000'000);
  EXPECT_EQ(rows[0]["max_ns"], 20'000'000);
  EXPECT_EQ(rows[0]["first_seen"], "2026-12-01T03:12:45.001000000Z");
  EXPECT_EQ(rows[0]["last_seen"], "2026-12-01T03:12:45.020000000Z");
  EXPECT_EQ(rows[1]["user_agent"], nullptr);
  EXPECT_EQ(rows[1]["deprecated"], true);
  const auto page = groups.page(capture.start, 80);
  EXPECT_NE(page.find("GetTaddressTxids *"), std::string::npos) << page;
  EXPECT_NE(page.find("* a deprecated method"), std::string::npos) << page;
}

TEST(Groups, FitThePageByLeavingColumnsOut) {
  CallGroups groups({GroupKey::user_agent, GroupKey::method, GroupKey::status});
  groups.add(call("GetTransaction", 30, 3, 0, "grpc-java-okhttp/1.60"));
  const auto capture = capture_of({});
  for (const std::size_t width : {80U, 120U}) {
    const auto page = groups.page(capture.start, width);
    for (std::size_t at = 0; at < page.size();) {
      const auto end = page.find('\n', at);
      EXPECT_LE(end - at, width) << page;
      at = end + 1;
    }
    EXPECT_NE(page.find("p50 ms"), std::string::npos) << page;
  }
}

TEST(JsonRpc, MethodsAreFoundInObjectsBatchesAndWhatIsCutOff) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(json_rpc_methods(R"({"jsonrpc":"2.0","params":{"method":"inner"},"method":"getblock"})"),
            Names{"getblock"});
  EXPECT_EQ(json_rpc_methods(R"([{"method":"a"},{"id":1,"method":"b"}])"), (Names{"a", "b"}));
  EXPECT_EQ(json_rpc_methods(R"({"method":"sendrawtransaction","params":["0400)"), Names{"sendrawtransaction"});
  for (const char* none : {"", "method", "{}", R"({"method":1})", R"(["method"])", "<html>"}) {
    EXPECT_EQ(json_rpc_methods(none), Names{}) << none;
  }
  EXPECT_EQ(json_rpc_methods(std::string(100'000, '[')), Names{}) << "must not nest without end";
}

TEST(Messages, ShowHashesReversedAndShortenWhatIsLong) {
  cash::z::wallet::sdk::rpc::BlockID id;
  id.set_height(12);
  id.set_hash("\x01\x02\x03");
  const auto* type = cash::z::wallet::sdk::rpc::BlockID::descriptor();
  EXPECT_EQ(message_text(type, id.SerializeAsString(), 1000), "{height: 12, hash: 030201}");
  EXPECT_EQ(message_json(type, id.SerializeAsString()).dump(), R"({"height":12,"hash":"030201"})");

  cash::z::wallet::sdk::rpc::RawTransaction transaction;
  transaction.set_data(std::string(1412, '\xab'));
  const auto bytes = transaction.SerializeAsString();
  const auto* raw = cash::z::wallet::sdk::rpc::RawTransaction::descriptor();
  EXPECT_EQ(
      message_text(raw, bytes, 1000), "{data: " + [] {
        std::string hex;
        for (int i = 0; i < 32; ++i) hex += "ab";
        return hex;
      }() + "... (1.38 KiB)}");
  EXPECT_EQ(message_json(raw, bytes)["data"].get<std::string>().size(), 2824U);
}

TEST(Messages, CannotSpeakToTheTerminal) {
  cash::z::wallet::sdk::rpc::LightdInfo info;
  info.set_vendor("\x1b[2J\"evil\"");
  EXPECT_EQ(message_text(info.descriptor(), info.SerializeAsString(), 1000), R"({vendor: "\x1b[2J\"evil\""})");
}

TEST(Messages, OfAnUnknownTypeAreToldByFieldNumber) {
  // field 1: 150, field 2: "testing", field 3: a message {1: 1}, field 1 again: 2, field 4: bytes
  const std::string body("\x08\x96\x01\x12\x07testing\x1a\x02\x08\x01\x08\x02\x22\x02\xff\xfe", 22);
  EXPECT_EQ(message_text(nullptr, body, 1000), R"({1: [150, 2], 2: "testing", 3: {1: 1}, 4: fffe})");
  EXPECT_EQ(message_json(nullptr, body).dump(), R"({"1":[150,2],"2":"testing","3":{"1":1},"4":"fffe"})");
  EXPECT_EQ(message_text(nullptr, "hello", 1000), "5 bytes, not a message: 68 65 6c 6c 6f");
  EXPECT_EQ(message_text(nullptr, "", 1000), "{}");
}

TEST(Messages, FieldsThatTheTypeDoesNotKnowAreShown) {
  const auto* type = cash::z::wallet::sdk::rpc::BlockID::descriptor();
  EXPECT_EQ(message_text(type, std::string("\x08\x01\x98\x06\x05", 5), 1000), "{height: 1, #99: 5}");
}

TEST(Messages, HostileOnesAreBounded) {
  std::string deep;
  for (int i = 0; i < 200; ++i)
    deep = std::string("\x0a") + static_cast<char>(std::min<std::size_t>(deep.size(), 127)) + deep;
  EXPECT_LT(message_text(nullptr, deep, 1000).size(), 2000U);
  std::string wide;
  for (uint32_t field = 1; field < 60'000; ++field) {
    uint32_t tag = field << 3;
    for (; tag > 127; tag >>= 7) wide += static_cast<char>(tag | 0x80);
    wide += static_cast<char>(tag);
    wide += '\x01';
  }
  EXPECT_LE(message_json(nullptr, wide).size(), 1001U);
  EXPECT_LT(message_text(nullptr, wide, 1000).size(), 1100U);
}

TEST(Tables, CutTheirLastColumnWhereNothingCanBeLeftOut) {
  Table table({{"name"}, {"more", Table::Align::left, 1}, {"words"}}, "");
  table.row({"a", "bbbbbbbbbb", "caf\xc3\xa9 and a long sentence"});
  EXPECT_EQ(table.text(), "name  more        words\na     bbbbbbbbbb  caf\xc3\xa9 and a long sentence\n");
  EXPECT_EQ(table.text(35), "name  words\na     caf\xc3\xa9 and a long sentence\n");
  EXPECT_EQ(table.text(20), "name  words\na     caf\xc3\xa9 and a ...\n");
}

}  // namespace
}  // namespace ztape::report
