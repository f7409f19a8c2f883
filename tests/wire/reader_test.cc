// What the fixtures do not have: every frame form, everything that must not be followed, and how each end is told.
#include <gtest/gtest.h>
#include <zlib.h>

#include "http2/decompress.h"
#include "tests/support/calls.h"
#include "tests/support/frames.h"

namespace ztape::test {
namespace {

constexpr auto kClient = Direction::client_to_server;
constexpr auto kServer = Direction::server_to_client;
const std::string kPath = "/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetBlock";

// A connection as a test writes it; each send is one read, a millisecond after the one before.
class Wire {
 public:
  Wire() {
    client(std::string(http2::kClientPreface) + settings({}));
    server(settings({}) + settings_ack());
    client(settings_ack());
  }
  void client(const std::string& bytes) { add(kClient, bytes); }
  void server(const std::string& bytes) { add(kServer, bytes); }
  void request(uint32_t stream, const std::string& body = "abc") {
    client(client_encoder.headers(stream, grpc_request(kPath), false) + data(stream, message(body), true));
  }
  [[nodiscard]] std::vector<http2::Call> calls(http2::CallBuilderOptions options = {.keep_bodies = true}) const {
    return read_calls(pieces_, options);
  }

  HeaderEncoder client_encoder;
  HeaderEncoder server_encoder;

 private:
  void add(Direction direction, const std::string& bytes) {
    now_ns_ += 1'000'000;
    pieces_.push_back({direction, bytes, now_ns_});
  }
  int64_t now_ns_ = 0;
  std::vector<Piece> pieces_;
};

struct Watcher : http2::ReaderSink {
  void on_frame(const http2::Frame& frame) override { frames.push_back(frame); }
  void on_unreadable(const http2::Unreadable& each) override { lost.push_back(each); }
  std::vector<http2::Frame> frames;
  std::vector<http2::Unreadable> lost;
};

void feed(http2::ConnectionReader& reader, Direction direction, const std::string& bytes) {
  reader.read(direction, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, 0);
}

TEST(Reader, LeavesPaddingOutOfMessages) {
  Wire wire;
  const auto block = wire.client_encoder.block(grpc_request(kPath));
  const std::string priority = u32(0) + "\x10";
  wire.client(frame(http2::kHeaders, http2::kEndHeaders | http2::kPadded | http2::kPriorityFlag, 1,
                    "\x03" + priority + block + std::string(3, '\0')));
  wire.client(frame(http2::kData, http2::kPadded, 1, "\x04" + message("hel").substr(0, 6) + std::string(4, '\0')));
  wire.client(frame(http2::kData, http2::kPadded | http2::kEndStream, 1, std::string(1, '\0') + "el"));
  const auto calls = wire.calls();
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].path, kPath);
  ASSERT_EQ(calls[0].requests.size(), 1U);
  EXPECT_EQ(calls[0].requests[0].body, "hel");
  EXPECT_EQ(calls[0].request_tail_bytes, 0U);
}

TEST(Reader, JoinsAHeaderBlockOutOfContinuations) {
  Wire wire;
  const auto block = wire.client_encoder.block(grpc_request(kPath));
  wire.client(frame(http2::kHeaders, http2::kEndStream, 1, block.substr(0, 5)));
  wire.client(frame(http2::kContinuation, 0, 1, block.substr(5, 1)));
  wire.client(frame(http2::kContinuation, http2::kEndHeaders, 1, block.substr(6)));
  wire.server(wire.server_encoder.headers(
      1, {{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "5"}}, true));
  const auto calls = wire.calls({.keep_frames = true});
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].path, kPath);
  EXPECT_EQ(calls[0].request_end_ns, calls[0].start_ns);
  EXPECT_TRUE(calls[0].trailers_only);
  EXPECT_EQ(calls[0].grpc_status, 5);
  EXPECT_EQ(calls[0].frames.size(), 4U);
}

TEST(Reader, ATableSizeHoldsFromTheAckOfItsOwnDirection) {
  Wire wire;
  wire.request(1);
  wire.server(settings({{1, 0}}));  // the server wants no dynamic table
  wire.request(3);                  // still with the old table: it has not been acknowledged
  wire.client(settings_ack());
  wire.client_encoder.set_table_size(0);
  wire.request(5);
  wire.request(7);
  const auto calls = wire.calls();
  ASSERT_EQ(calls.size(), 4U);
  for (const auto& call : calls) EXPECT_EQ(call.path, kPath) << call.unreadable_reason;
}

TEST(Reader, FollowsALargerTableAfterTheAck) {
  Wire wire;
  wire.server(settings({{1, 65536}}));
  wire.client(settings_ack());
  wire.client_encoder.set_table_size(65536);
  for (uint32_t stream = 1; stream < 400; stream += 2) {
    auto fields = grpc_request(kPath);
    fields.push_back({"x-number", std::to_string(stream) + std::string(60, 'x')});
    wire.client(wire.client_encoder.headers(stream, fields, true));
  }
  wire.client(wire.client_encoder.headers(401, {{":path", kPath}, {"x-number", "1" + std::string(60, 'x')}}, true));
  const auto calls = wire.calls();
  ASSERT_EQ(calls.size(), 201U);
  EXPECT_EQ(*http2::find_header(calls[200].request_headers, "x-number"), "1" + std::string(60, 'x'));
}

TEST(Reader, AfterABombADirectionHasFramesButNoHeaders) {
  Watcher watcher;
  http2::ConnectionReader reader(watcher);
  feed(reader, kClient, std::string(http2::kClientPreface) + settings({}));
  HeaderEncoder encoder;
  // One large field, then the index of it thousands of times: some KB become hundreds of MB.
  feed(reader, kClient, encoder.headers(1, {{"x-bomb", std::string(3000, 'b')}}, false));
  const std::string indexed(3000, '\xbe');
  feed(reader, kClient, frame(http2::kHeaders, http2::kEndHeaders, 3, indexed));
  feed(reader, kClient, encoder.headers(5, grpc_request(kPath), true));
  ASSERT_EQ(watcher.lost.size(), 1U);
  EXPECT_TRUE(watcher.lost[0].headers_only);
  EXPECT_NE(watcher.lost[0].reason.find("larger than 1 MiB"), std::string::npos) << watcher.lost[0].reason;
  EXPECT_TRUE(reader.readable(kClient));
  EXPECT_EQ(watcher.frames.size(), 4U);
}

TEST(Reader, AnEndlessHeaderBlockIsDroppedAndTheFramesGoOn) {
  Watcher watcher;
  http2::ConnectionReader reader(watcher);
  feed(reader, kClient, std::string(http2::kClientPreface) + settings({}) + frame(http2::kHeaders, 0, 1, "\x82"));
  for (int i = 0; i < 40; ++i) feed(reader, kClient, frame(http2::kContinuation, 0, 1, std::string(16384, '\x82')));
  feed(reader, kClient, frame(http2::kContinuation, http2::kEndHeaders, 1, ""));
  feed(reader, kClient, data(1, "x", true));
  ASSERT_EQ(watcher.lost.size(), 1U);
  EXPECT_TRUE(watcher.lost[0].headers_only);
  EXPECT_EQ(watcher.frames.back().type, http2::kData);
}

TEST(Reader, BrokenHpackTakesTheHeadersOfThatDirectionOnly) {
  Wire wire;
  wire.client(frame(http2::kHeaders, http2::kEndHeaders, 1, "\xff\xff\xff\xff\xff"));
  wire.client(wire.client_encoder.headers(3, grpc_request(kPath), true));
  wire.server(wire.server_encoder.headers(3, {{":status", "200"}, {"grpc-status", "0"}}, true));
  const auto calls = wire.calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[1].path, "");
  EXPECT_NE(calls[1].unreadable_reason.find("HPACK"), std::string::npos) << calls[1].unreadable_reason;
  EXPECT_EQ(calls[1].grpc_status, 0);
}

TEST(Reader, NamesWhatIsNotHttp2) {
  Watcher watcher;
  http2::ConnectionReader reader(watcher);
  feed(reader, kClient, "GE");
  feed(reader, kClient, "T / HTTP/1.1\r\nHost: x\r\n\r\n");
  feed(reader, kServer, "HTTP/1.1 200 OK\r\n\r\n<html>");
  ASSERT_EQ(watcher.lost.size(), 2U);
  EXPECT_EQ(watcher.lost[0].reason, "not HTTP/2: begins with \"GE\"");
  EXPECT_NE(watcher.lost[1].reason.find("HTTP/1.1"), std::string::npos) << watcher.lost[1].reason;
  EXPECT_EQ(watcher.lost[1].offset, 0U);
  EXPECT_TRUE(watcher.frames.empty());
  EXPECT_EQ(reader.offset(kClient), 27U);
  EXPECT_EQ(reader.offset(kServer), 25U);
}

TEST(Reader, StopsAtWhatItMustNotParse) {
  const std::string start = std::string(http2::kClientPreface) + settings({});
  const std::vector<std::pair<std::string, std::string>> cases{
      {frame(http2::kData, 0, 0, "x"), "DATA on stream 0"},
      {frame(http2::kHeaders, 0, 0, "x"), "HEADERS on stream 0"},
      {frame(http2::kRstStream, 0, 1, "xyz"), "RST_STREAM of 3 bytes"},
      {frame(http2::kSettings, 0, 0, "xyz"), "SETTINGS of 3 bytes"},
      {frame(http2::kSettings, 0, 1, ""), "SETTINGS on stream 1"},
      {frame(http2::kPing, 0, 0, "xyz"), "PING of 3 bytes"},
      {frame(http2::kGoaway, 0, 0, "xyz"), "GOAWAY of 3 bytes"},
      {frame(http2::kWindowUpdate, 0, 0, "xyz"), "WINDOW_UPDATE of 3 bytes"},
      {frame(http2::kContinuation, 0, 1, ""), "CONTINUATION outside a header block"},
      {frame(http2::kHeaders, 0, 1, "\x82") + data(1, "x", false), "DATA inside the header block of stream 1"},
      {frame(http2::kData, http2::kPadded, 1, "\x05xx"), "DATA with more padding than it is long"},
      {frame(http2::kData, http2::kPadded, 1, ""), "DATA has the PADDED flag and no padding"},
      {frame(http2::kHeaders, http2::kPadded | http2::kEndHeaders, 1, "\x09\x82"),
       "HEADERS whose padding and priority do not fit into it"},
      {frame(http2::kData, 0, 1, std::string(16385, 'x')),
       "DATA of 16385 bytes is larger than the peer allows (16384)"},
  };
  for (const auto& [bytes, reason] : cases) {
    Watcher watcher;
    http2::ConnectionReader reader(watcher);
    feed(reader, kClient, start + bytes + settings({}));
    ASSERT_EQ(watcher.lost.size(), 1U) << reason;
    EXPECT_EQ(watcher.lost[0].reason, reason);
    EXPECT_FALSE(reader.readable(kClient));
    EXPECT_TRUE(reader.readable(kServer));
    EXPECT_EQ(reader.offset(kClient), start.size() + bytes.size() + settings({}).size()) << reason;
  }
}

TEST(Reader, TakesAFrameAsLargeAsThePeerHasAllowed) {
  Watcher watcher;
  http2::ConnectionReader reader(watcher);
  feed(reader, kClient, std::string(http2::kClientPreface) + settings({}));
  feed(reader, kServer, settings({{5, 100'000}}));
  feed(reader, kClient, data(1, std::string(100'000, 'x'), false));
  EXPECT_TRUE(watcher.lost.empty());
  EXPECT_EQ(watcher.frames.back().length, 100'000U);
}

TEST(Reader, CarriesFramesOfUnknownTypes) {
  Watcher watcher;
  http2::ConnectionReader reader(watcher);
  feed(reader, kClient,
       std::string(http2::kClientPreface) + settings({}) + frame(0x1f, 0x55, 9, "what") + settings({}));
  EXPECT_TRUE(watcher.lost.empty());
  ASSERT_EQ(watcher.frames.size(), 3U);
  EXPECT_EQ(watcher.frames[1].type, 0x1f);
  EXPECT_EQ(http2::frame_type_name(watcher.frames[1].type), "0x1f");
}

TEST(Reader, AfterAGapADirectionIsChunksOnly) {
  Watcher watcher;
  http2::ConnectionReader reader(watcher);
  feed(reader, kClient, std::string(http2::kClientPreface) + settings({}));
  reader.gap(kClient, "the disk was slow");
  feed(reader, kClient, data(1, "x", false));
  ASSERT_EQ(watcher.lost.size(), 1U);
  EXPECT_EQ(watcher.lost[0].reason, "the disk was slow");
  EXPECT_EQ(watcher.frames.size(), 1U);
}

TEST(Calls, TellHowEachEnded) {
  Wire wire;
  for (const uint32_t stream : {1, 3, 5, 7, 9}) wire.request(stream);
  wire.server(wire.server_encoder.headers(1, grpc_response(), false) + data(1, message("xy"), false) +
              wire.server_encoder.headers(1, grpc_trailers(0), true));
  wire.client(rst_stream(3, 8));
  wire.server(rst_stream(5, 2));
  wire.server(goaway(7, 11, "too_many_pings"));
  const auto calls = wire.calls();
  ASSERT_EQ(calls.size(), 5U);
  EXPECT_EQ(calls[0].ended_by, http2::EndedBy::trailers);
  EXPECT_EQ(calls[0].grpc_message, "");
  EXPECT_EQ(calls[1].ended_by, http2::EndedBy::client_reset);
  EXPECT_EQ(calls[1].reset_code, 8U);
  EXPECT_EQ(calls[2].ended_by, http2::EndedBy::server_reset);
  EXPECT_EQ(calls[2].reset_code, 2U);
  EXPECT_EQ(calls[3].ended_by, http2::EndedBy::client_close);
  EXPECT_EQ(calls[4].ended_by, http2::EndedBy::goaway);
  EXPECT_EQ(calls[4].reset_code, 11U);
}

TEST(Calls, AnAnswerThatCrossesItsCancellationBelongsToTheCall) {
  Wire wire;
  wire.request(1);
  wire.client(rst_stream(1, 8));
  wire.server(wire.server_encoder.headers(1, grpc_response(), false) + data(1, message("late"), false) +
              wire.server_encoder.headers(1, grpc_trailers(0), true));
  const auto calls = wire.calls();
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].ended_by, http2::EndedBy::client_reset);
  EXPECT_EQ(calls[0].response_message_count, 1U);
  EXPECT_FALSE(calls[0].grpc_status);
  EXPECT_GT(calls[0].responses[0].last_byte_ns, calls[0].end_ns);
}

TEST(Calls, ResetStreamsAreNotKeptForEver) {
  std::size_t emitted = 0;
  http2::CallBuilder builder(1, {}, [&](http2::Call&&) { ++emitted; });
  http2::ConnectionReader reader(builder);
  HeaderEncoder encoder;
  feed(reader, kClient, std::string(http2::kClientPreface) + settings({}));
  for (uint32_t stream = 1; stream < 2000; stream += 2) {
    feed(reader, kClient, encoder.headers(stream, grpc_request(kPath), false) + rst_stream(stream, 8));
  }
  EXPECT_EQ(emitted, 1000U - 64U);
}

TEST(Calls, TheFirstEndCounts) {
  Wire wire;
  wire.client(wire.client_encoder.headers(1, grpc_request(kPath), false));
  wire.server(wire.server_encoder.headers(
                  1, {{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "8"}}, true) +
              rst_stream(1, 0));
  const auto calls = wire.calls();
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].ended_by, http2::EndedBy::trailers);
  EXPECT_EQ(calls[0].grpc_status, 8);
  EXPECT_FALSE(calls[0].reset_code);
}

TEST(Calls, TheEndOfTheServersDirectionEndsWhatIsOpen) {
  std::vector<http2::Call> calls;
  http2::CallBuilder builder(1, {}, [&](http2::Call&& call) { calls.push_back(std::move(call)); });
  http2::ConnectionReader reader(builder);
  HeaderEncoder encoder;
  feed(reader, kClient, std::string(http2::kClientPreface) + settings({}));
  feed(reader, kClient, encoder.headers(1, grpc_request(kPath), true) + encoder.headers(3, grpc_request(kPath), true));
  feed(reader, kClient, rst_stream(3, 8));
  builder.server_ended(70);
  // As grpc++ does with what it had open, after the FIN of the server.
  feed(reader, kClient, rst_stream(1, 7));
  builder.close(http2::EndedBy::client_close, 90);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].ended_by, http2::EndedBy::server_close);
  EXPECT_EQ(calls[0].end_ns, 70);
  EXPECT_FALSE(calls[0].reset_code);
  EXPECT_EQ(calls[1].ended_by, http2::EndedBy::client_reset);
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Calls, ReadCompressedMessages) {
  Wire wire;
  wire.request(1);
  auto fields = grpc_response();
  fields.push_back({"grpc-encoding", "gzip"});
  const std::string body(1000, 'z');
  wire.server(wire.server_encoder.headers(1, fields, false) + data(1, message(gzip(body), true), false) +
              data(1, message("plain"), false) + data(1, message("broken", true), false) +
              wire.server_encoder.headers(1, grpc_trailers(0), true));
  const auto calls = wire.calls();
  ASSERT_EQ(calls[0].responses.size(), 3U);
  EXPECT_EQ(calls[0].responses[0].body, body);
  EXPECT_EQ(calls[0].responses[0].length, gzip(body).size());
  EXPECT_EQ(calls[0].responses[1].body, "plain");
  EXPECT_EQ(calls[0].responses[2].error, "the message does not decompress as gzip");
}

TEST(Calls, DecompressionIsBounded) {
  const auto bomb = http2::decompress("gzip", gzip(std::string(10'000'000, '\0')), 1'000'000);
  ASSERT_FALSE(bomb);
  EXPECT_EQ(bomb.error().code, ErrorCode::over_limit);
  EXPECT_EQ(http2::decompress("snappy", "x", 100).error().message, "message encoding 'snappy' is not known");
}

TEST(Calls, AnHtmlPageIsKeptApartFromMessages) {
  Wire wire;
  wire.request(1);
  wire.server(wire.server_encoder.headers(1, {{":status", "502"}, {"content-type", "text/html"}}, false) +
              data(1, "<html>Bad Gateway</html>", true));
  wire.request(3);
  wire.server(wire.server_encoder.headers(3, grpc_response(), false) + data(3, "<html>Bad Gateway</html>", true));
  const auto calls = wire.calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].http_status, 502);
  EXPECT_EQ(calls[0].response_message_count, 0U);
  EXPECT_EQ(calls[0].response_tail_bytes, 24U);
  EXPECT_EQ(calls[0].unreadable_reason, "the answer is text/html, not gRPC");
  EXPECT_EQ(calls[1].unreadable_reason, "compression flag 60: this is not a gRPC message");
  EXPECT_EQ(calls[1].response_tail_bytes, 24U);
}

TEST(Calls, AMessageThatNeverBecomesWholeIsCounted) {
  Wire wire;
  wire.request(1);
  wire.server(wire.server_encoder.headers(1, grpc_response(), false) +
              data(1, message("whole") + message("half").substr(0, 7), false));
  const auto calls = wire.calls();
  EXPECT_EQ(calls[0].response_message_count, 1U);
  EXPECT_EQ(calls[0].response_tail_bytes, 7U);
}

TEST(PercentDecode, LeavesBrokenEscapesAlone) {
  EXPECT_EQ(http2::percent_decode("a%20b%c3%A4%"), "a b\xc3\xa4%");
  EXPECT_EQ(http2::percent_decode("100%zz%4"), "100%zz%4");
}

}  // namespace
}  // namespace ztape::test
