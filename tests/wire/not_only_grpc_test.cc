// gRPC-Web, HTTP/1.1, the upgrade to h2c and what is none of them: bytes in, calls out, cut anywhere.
#include <gtest/gtest.h>

#include <map>

#include "http2/base64.h"
#include "http2/connection_collector.h"
#include "tests/support/calls.h"
#include "tests/support/frames.h"

namespace ztape::test {
namespace {

using http2::Content;
using http2::EndedBy;
using http2::Wire;
constexpr auto kClient = Direction::client_to_server;
constexpr auto kServer = Direction::server_to_client;
const std::string kPath = "/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetLatestBlock";

// The pieces as a capture's chunks, each cut into chunks of at most `most` bytes.
http2::RecordedConnection collect(const std::vector<Piece>& pieces, std::size_t most = 1 << 20) {
  http2::ConnectionCollector collector(1, {.keep_bodies = true, .keep_frames = true, .not_only_grpc = true}, nullptr);
  uint64_t offset[2] = {0, 0};
  int64_t time_ns = 0;
  for (const auto& piece : pieces) {
    for (std::size_t at = 0; at < piece.bytes.size(); at += most) {
      capture::Chunk chunk;
      chunk.set_connection(1);
      chunk.set_direction(static_cast<capture::Direction>(piece.direction));
      chunk.set_offset(offset[index(piece.direction)]);
      chunk.set_bytes(piece.bytes.substr(at, most));
      chunk.set_time_ns(++time_ns);
      offset[index(piece.direction)] += chunk.bytes().size();
      collector.chunk(chunk);
    }
  }
  for (const auto direction : {capture::CLIENT_TO_SERVER, capture::SERVER_TO_CLIENT}) {
    capture::Chunk end;
    end.set_direction(direction);
    end.set_offset(offset[direction]);
    end.set_end(capture::FIN);
    end.set_time_ns(++time_ns);
    collector.chunk(end);
  }
  capture::ConnectionClose close;
  close.set_time_ns(time_ns);
  close.set_first_side(capture::DOWNSTREAM);
  collector.close(close);
  return collector.take();
}

// Checks `expect` of the connection however its bytes are cut.
template <typename Expect>
void cut_anywhere(const std::vector<Piece>& pieces, Expect expect) {
  for (const std::size_t most : {1U, 2U, 3U, 5U, 7U, 11U, 64U, 1U << 20}) {
    SCOPED_TRACE("chunks of at most " + std::to_string(most) + " bytes");
    expect(collect(pieces, most));
  }
}

std::string trailer_frame(const std::string& text) {
  auto bytes = message(text);
  bytes[0] = static_cast<char>(0x80);
  return bytes;
}

std::string request_head(const std::string& line, const std::string& fields, std::size_t length) {
  return line + " HTTP/1.1\r\nHost: node\r\n" + fields + "Content-Length: " + std::to_string(length) + "\r\n\r\n";
}

TEST(Http1, RequestsAndAnswersOfAKeptConnectionAreCalls) {
  const std::string ask = R"({"method":"getblockcount"})";
  std::vector<Piece> pieces;
  for (int i = 0; i < 3; ++i) {
    pieces.push_back({kClient, request_head("POST /", "Content-Type: application/json\r\n", ask.size()) + ask});
    pieces.push_back({kServer,
                      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                      "transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"});
  }
  cut_anywhere(pieces, [&](const http2::RecordedConnection& connection) {
    EXPECT_EQ(connection.wire, Wire::http1);
    ASSERT_EQ(connection.calls.size(), 3U);
    uint32_t number = 0;
    for (const auto& call : connection.calls) {
      EXPECT_EQ(call.stream, ++number);
      EXPECT_EQ(call.path, "/");
      EXPECT_EQ(call.content, Content::other);
      EXPECT_EQ(call.http_status, 200);
      EXPECT_EQ(call.request_beginning, ask);
      EXPECT_EQ(call.response_beginning, "{}");
      EXPECT_EQ(call.response_tail_bytes, 2U);
      EXPECT_EQ(call.ended_by, EndedBy::trailers);
      EXPECT_EQ(call.unreadable_reason, "");
    }
  });
}

TEST(Http1, AnAnswerWithoutALengthEndsWithItsConnectionAndHeadHasNoBody) {
  const std::vector<Piece> pieces{{kClient, "HEAD /a HTTP/1.0\r\n\r\n"},
                                  {kServer, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 99\r\n\r\n"},
                                  {kClient, "GET /b HTTP/1.0\r\n\r\n"},
                                  {kServer, "HTTP/1.0 502 Bad Gateway\r\nContent-Type: text/html\r\n\r\n<html>"}};
  cut_anywhere(pieces, [](const http2::RecordedConnection& connection) {
    ASSERT_EQ(connection.calls.size(), 2U);
    EXPECT_EQ(connection.calls[0].response_tail_bytes, 0U);
    EXPECT_EQ(connection.calls[0].http_version, http2::HttpVersion::http1_0);
    EXPECT_EQ(connection.calls[1].http_status, 502);
    EXPECT_EQ(connection.calls[1].response_beginning, "<html>");
    EXPECT_EQ(connection.calls[1].ended_by, EndedBy::trailers);
  });
}

TEST(Http1, WhatCannotBeFollowedIsSaidAndEndsWhatWasOpen) {
  const auto connection = collect({{kClient, "GET / HTTP/1.1\r\n\r\n"}, {kServer, "what?"}});
  EXPECT_NE(connection.http1_lost.find("server_to_client: not HTTP/1"), std::string::npos) << connection.http1_lost;
  ASSERT_EQ(connection.calls.size(), 1U);
  EXPECT_EQ(connection.calls[0].ended_by, EndedBy::client_close);
  EXPECT_NE(connection.calls[0].unreadable_reason, "");
}

TEST(Http1, ManyRequestsWithoutAnAnswerAreBounded) {
  std::string flood;
  for (int i = 0; i < 10'001; ++i) flood += "GET / HTTP/1.1\r\n\r\n";
  EXPECT_NE(collect({{kClient, flood}}).http1_lost.find("10,000"), std::string::npos);
}

// As nghttp and curl --http2 do it. The header's payload is SETTINGS with HEADER_TABLE_SIZE 0.
class Upgrade {
 public:
  explicit Upgrade(const std::string& body = "") {
    client(request_head("POST /up",
                        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAAAA\r\n",
                        body.size()) +
           body);
  }
  void client(const std::string& bytes) { pieces.push_back({kClient, bytes}); }
  void server(const std::string& bytes) { pieces.push_back({kServer, bytes}); }

  std::vector<Piece> pieces;
  HeaderEncoder client_encoder;
  HeaderEncoder server_encoder{0};
};

TEST(H2cUpgrade, GivesTheFirstRequestAsStream1AndReadsTheFramesBehindIt) {
  for (const std::string body : {"", "some body"}) {
    Upgrade wire(body);
    wire.server("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + settings({}) +
                wire.server_encoder.headers(1, {{":status", "200"}, {"content-type", "text/plain"}}, false) +
                data(1, "one", true));
    wire.client(std::string(http2::kClientPreface) + settings({}) + settings_ack() +
                wire.client_encoder.headers(3, grpc_request(kPath), false) + data(3, message("x"), true));
    wire.server(settings_ack() + wire.server_encoder.headers(3, grpc_response(), false) + data(3, message("y"), false) +
                wire.server_encoder.headers(3, grpc_trailers(0), true));
    cut_anywhere(wire.pieces, [&](const http2::RecordedConnection& connection) {
      EXPECT_EQ(connection.changed_to, "h2c");
      for (const auto& lost : connection.unreadable) ADD_FAILURE() << lost.reason;
      ASSERT_EQ(connection.calls.size(), 2U);
      const auto& first = connection.calls[0];
      EXPECT_EQ(first.stream, 1U);
      EXPECT_EQ(first.path, "/up");
      EXPECT_EQ(first.request_beginning, body);
      EXPECT_EQ(first.response_beginning, "one");
      EXPECT_EQ(first.http_status, 200);
      const auto* authority = http2::find_header(first.request_headers, ":authority");
      ASSERT_TRUE(authority);
      EXPECT_EQ(*authority, "node");
      EXPECT_EQ(http2::find_header(first.request_headers, "http2-settings"), nullptr);
      EXPECT_EQ(connection.calls[1].path, kPath);
      EXPECT_EQ(connection.calls[1].grpc_status, 0);
      ASSERT_EQ(connection.calls[1].responses.size(), 1U);
      EXPECT_EQ(connection.calls[1].responses[0].body, "y");
      // Their places are those in the bytes.
      ASSERT_FALSE(connection.frames.empty());
      for (const auto& frame : connection.frames) EXPECT_GE(frame.offset, 20U);
    });
  }
}

TEST(H2cUpgrade, DeclinedTheConnectionStaysHttp1) {
  Upgrade wire;
  wire.server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno");
  wire.client("GET /next HTTP/1.1\r\n\r\n");
  wire.server("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  cut_anywhere(wire.pieces, [](const http2::RecordedConnection& connection) {
    EXPECT_EQ(connection.changed_to, "");
    ASSERT_EQ(connection.calls.size(), 2U);
    EXPECT_EQ(connection.calls[0].response_beginning, "no");
    EXPECT_EQ(connection.calls[1].path, "/next");
    EXPECT_EQ(connection.calls[1].http_status, 404);
    EXPECT_FALSE(connection.unreadable.empty());
  });
}

TEST(H2cUpgrade, ThatNeverComesHoldsBackABoundedNumberOfBytes) {
  Upgrade wire;
  wire.client(std::string(300'000, 'x'));
  EXPECT_FALSE(collect(wire.pieces).unreadable.empty());
}

struct WebCase {
  std::string type;
  Content content;
};

class GrpcWeb : public testing::TestWithParam<WebCase> {
 protected:
  // Each piece is encoded for itself in the text form.
  [[nodiscard]] std::string body(const std::vector<std::string>& pieces) const {
    std::string text;
    for (const auto& piece : pieces) text += GetParam().content == Content::grpc_web_text ? base64(piece) : piece;
    return text;
  }
  static std::string base64(const std::string& bytes) {
    static const std::string kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
      uint32_t bits = 0;
      const auto here = std::min<std::size_t>(3, bytes.size() - at);
      for (std::size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < here ? static_cast<uint8_t>(bytes[at + i]) : 0);
      for (std::size_t i = 0; i < 4; ++i) text += i <= here ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
    }
    return text;
  }
  void expect_call(const http2::RecordedConnection& connection) const {
    ASSERT_EQ(connection.calls.size(), 1U);
    const auto& call = connection.calls[0];
    EXPECT_EQ(call.content, GetParam().content);
    EXPECT_EQ(call.path, kPath);
    EXPECT_EQ(call.unreadable_reason, "");
    ASSERT_EQ(call.requests.size(), 1U);
    EXPECT_EQ(call.requests[0].body, "ask");
    ASSERT_EQ(call.responses.size(), 2U);
    EXPECT_EQ(call.responses[1].body, "second");
    EXPECT_EQ(call.response_bytes, 11U);
    EXPECT_EQ(call.response_tail_bytes, 0U);
    EXPECT_EQ(call.grpc_status, 5);
    EXPECT_EQ(call.grpc_message, "no such thing");
    EXPECT_EQ(call.response_beginning, "");
  }
  [[nodiscard]] std::string answer() const {
    return body(
        {message("first"), message("second"), trailer_frame("grpc-status:5\r\nGrpc-Message: no%20such thing\r\n")});
  }
};

TEST_P(GrpcWeb, IsReadOverHttp2) {
  HeaderEncoder client;
  HeaderEncoder server;
  cut_anywhere(
      {{kClient,
        std::string(http2::kClientPreface) + settings({}) +
            client.headers(1, {{":method", "POST"}, {":path", kPath}, {"content-type", GetParam().type}}, false) +
            data(1, body({message("ask")}), true)},
       {kServer, settings({}) + settings_ack() +
                     server.headers(1, {{":status", "200"}, {"content-type", GetParam().type}}, false) +
                     data(1, answer(), true)}},
      [this](const auto& connection) { expect_call(connection); });
}

TEST_P(GrpcWeb, IsReadOverHttp1) {
  const auto ask = body({message("ask")});
  const auto fields = "Content-Type: " + GetParam().type + "\r\n";
  cut_anywhere({{kClient, request_head("POST " + kPath, fields, ask.size()) + ask},
                {kServer, "HTTP/1.1 200 OK\r\n" + fields + "Content-Length: " + std::to_string(answer().size()) +
                              "\r\n\r\n" + answer()}},
               [this](const auto& connection) { expect_call(connection); });
}

INSTANTIATE_TEST_SUITE_P(Forms, GrpcWeb,
                         testing::Values(WebCase{"application/grpc-web+proto", Content::grpc_web},
                                         WebCase{"application/grpc-web-text", Content::grpc_web_text}),
                         [](const auto& each) { return each.index == 0 ? "Binary" : "Text"; });

TEST(Bodies, OfAnHtmlPageInPlaceOfGrpcTheBeginningIsKept) {
  for (const bool as_grpc : {false, true}) {
    HeaderEncoder client;
    HeaderEncoder server;
    const std::string page = "<html>" + std::string(10'000, 'x');
    const auto connection = collect(
        {{kClient, std::string(http2::kClientPreface) + settings({}) + client.headers(1, grpc_request(kPath), false) +
                       data(1, message("ask"), true)},
         {kServer,
          settings({}) +
              server.headers(1, {{":status", "502"}, {"content-type", as_grpc ? "application/grpc" : "text/html"}},
                             false) +
              data(1, page, true)}},
        7);
    ASSERT_EQ(connection.calls.size(), 1U);
    EXPECT_EQ(connection.calls[0].response_beginning, page.substr(0, http2::kKeptBeginningBytes));
    EXPECT_EQ(connection.calls[0].request_beginning, "");
    EXPECT_NE(connection.calls[0].unreadable_reason, "");
  }
}

TEST(FirstBytes, SayWhatIsSpoken) {
  EXPECT_EQ(http2::wire_of(""), Wire::undecided);
  EXPECT_EQ(http2::wire_of("P"), Wire::undecided);
  EXPECT_EQ(http2::wire_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r"), Wire::undecided);
  EXPECT_EQ(http2::wire_of(http2::kClientPreface), Wire::http2);
  EXPECT_EQ(http2::wire_of("PO"), Wire::undecided);
  EXPECT_EQ(http2::wire_of("POST "), Wire::http1);
  EXPECT_EQ(http2::wire_of("M-SEARCH *"), Wire::http1);
  for (const char* other : {"\x16\x03\x01", "hello", " GET", "GET\t", "ABCDEFGHIJKLMNOPQRSTUVWX"}) {
    EXPECT_EQ(http2::wire_of(other), Wire::other) << other;
  }
}

// A ClientHello with SNI "example.com" and ALPN h2, http/1.1; laid out by RFC 8446, section 4.1.2.
std::string client_hello() {
  const auto sized = [](std::size_t digits, const std::string& text) {
    std::string out;
    for (std::size_t i = digits; i-- > 0;) out += static_cast<char>(text.size() >> (8 * i));
    return out + text;
  };
  using namespace std::string_literals;
  const auto names = "\x00\x00"s + sized(2, sized(2, "\x00"s + sized(2, "example.com")));
  const auto alpn = "\x00\x10"s + sized(2, sized(2, sized(1, "h2") + sized(1, "http/1.1")));
  const auto extensions = "\xff\x01"s + sized(2, "\x00"s) + names + alpn;
  const auto hello = "\x03\x03"s + std::string(32, 'r') + sized(1, std::string(32, 's')) + sized(2, "\x13\x01"s) +
                     sized(1, "\x00"s) + sized(2, extensions);
  return "\x16\x03\x01"s + sized(2, "\x01"s + sized(3, hello));
}

TEST(FirstBytes, OfTlsNameTheServerThatIsAskedFor) {
  const auto bytes = client_hello();
  const auto hello = http2::read_client_hello(bytes);
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->server_name, "example.com");
  EXPECT_EQ(hello->alpn, (std::vector<std::string>{"h2", "http/1.1"}));
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    const auto torn = http2::read_client_hello(bytes.substr(0, cut));
    EXPECT_EQ(torn.has_value(), cut > 5) << cut;
  }
  EXPECT_FALSE(http2::read_client_hello(std::string("\x15\x03\x03\x00\x02\x02\x0a", 7)));
  EXPECT_TRUE(http2::is_tls_record(std::string("\x15\x03\x03\x00\x02\x02\x0a", 7)));
}

TEST(Base64, TakesWholeGroupsOnly) {
  std::vector<uint8_t> bytes;
  std::string text = "AQ==AgM=BAUGB";
  EXPECT_TRUE(http2::decode_base64_groups(text, bytes));
  EXPECT_EQ(bytes, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(text, "B");
  text = "A*==";
  EXPECT_FALSE(http2::decode_base64_groups(text, bytes));
  EXPECT_EQ(http2::decode_base64url("-_8"), (std::vector<uint8_t>{0xfb, 0xff}));
  EXPECT_FALSE(http2::decode_base64url("AAAAA"));
}

}  // namespace
}  // namespace ztape::test
