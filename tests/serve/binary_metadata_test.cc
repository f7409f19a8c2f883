// gRPC C-core's true binary metadata, which nghttp2 takes for invalid: a server that is replayed or served sends and
// gets it once the recorded SETTINGS allow it.
#include "replay/binary_metadata.h"

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <array>
#include <string>

#include "proto/method_table.h"
#include "replay/client_session.h"
#include "replay/serve_session.h"
#include "tests/serve/client.h"
#include "tests/serve/recorded.h"
#include "tests/support/frames.h"

namespace ztape::replay {
namespace {

using std::string_literals::operator""s;

constexpr http2::Setting kAllowTrueBinary{.id = 0xfe03, .value = 1};

// What a replayed request heard.
struct Heard : ClientSession::Handler {
  void on_request_sent(int32_t /*stream*/) override {}
  void on_headers(int32_t /*stream*/, const http2::HeaderList& fields, bool /*end*/) override { headers = fields; }
  void on_data(int32_t /*stream*/, std::span<const uint8_t> /*bytes*/) override {}
  void on_data_end(int32_t /*stream*/) override {}
  void on_closed(int32_t /*stream*/, uint32_t code, bool /*by_server*/) override { closed_with = code; }
  void on_goaway(int32_t /*last*/, uint32_t /*code*/, const std::string& /*text*/) override {}

  http2::HeaderList headers;
  uint32_t closed_with = UINT32_MAX;
};

// A server that answers the first request with one header block that has `name: value`.
void answer_with(ClientSession& client, std::string name, std::string value) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session* server = nullptr;
  nghttp2_session_server_new(&server, callbacks, nullptr);
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_submit_settings(server, NGHTTP2_FLAG_NONE, nullptr, 0);
  const auto sent = client.take_output();
  nghttp2_session_mem_recv(server, reinterpret_cast<const uint8_t*>(sent.data()), sent.size());
  std::string status_name = ":status";
  std::string status = "200";
  const auto field = [](std::string& key, std::string& text) {
    return nghttp2_nv{reinterpret_cast<uint8_t*>(key.data()), reinterpret_cast<uint8_t*>(text.data()), key.size(),
                      text.size(), NGHTTP2_NV_FLAG_NONE};
  };
  const std::array<nghttp2_nv, 2> fields{field(status_name, status), field(name, value)};
  ASSERT_EQ(nghttp2_submit_response(server, 1, fields.data(), fields.size(), nullptr), 0);
  const uint8_t* bytes = nullptr;
  for (ssize_t size = 0; (size = nghttp2_session_mem_send(server, &bytes)) > 0;) {
    ASSERT_TRUE(client.receive({bytes, static_cast<std::size_t>(size)}));
  }
  nghttp2_session_del(server);
}

Heard heard_of(const std::string& name, const std::string& value) {
  Heard heard;
  auto client = ClientSession::create({kAllowTrueBinary}, 0, heard);
  const auto stream = (*client)->start(test::grpc_request("/a/b"));
  (*client)->half_close(*stream);
  answer_with(**client, name, value);
  (*client)->take_output();
  return heard;
}

TEST(BinaryMetadata, BecomesBase64WithoutPadding) {
  http2::HeaderList fields{{"a-bin", "\0"s}, {"b-bin", "\0\xff"s}, {"c-bin", "\0\0\xff"s},      {"d-bin", "\0Man"s},
                           {"e-bin", "AP8"}, {"plain", "\0x"s},    {"f-bin", "\0\xfb\xef\xff"s}};
  to_base64(fields);
  const http2::HeaderList expected{{"a-bin", ""},    {"b-bin", "/w"},   {"c-bin", "AP8"}, {"d-bin", "TWFu"},
                                   {"e-bin", "AP8"}, {"plain", "\0x"s}, {"f-bin", "++//"}};
  EXPECT_EQ(fields, expected);
}

struct Asked {
  ServeOptions options;
  ServeCounts counts;
  std::vector<std::string> logged;
  ServeLog log = [this](const std::string& line) { logged.push_back(line); };
};

test::Answered answered_to(const http2::HeaderList& metadata) {
  Asked with;
  with.options.settings = {kAllowTrueBinary};
  AnswerBook book({test::answer("GetLatestBlock", "", {"tip"})}, with.options.writes, false);
  ServeSession session(book, with.options, with.counts, with.log);
  test::MemoryClient client({kAllowTrueBinary});
  client.exchange(session);
  const auto stream = client.request(test::path_of("GetLatestBlock"), {""}, true, metadata);
  client.exchange(session);
  return client.answers[stream];
}

TEST(BinaryMetadata, AServedAnswerComesToARequestThatHasIt) {
  EXPECT_EQ(answered_to({{"trace-bin", "\0\0\x01\xff"s}}).status(), "0");
}

TEST(BinaryMetadata, OtherInvalidHeadersStillResetTheRequest) {
  EXPECT_EQ(answered_to({{"trace", "\0\x01"s}}).reset_code, NGHTTP2_PROTOCOL_ERROR);
}

TEST(BinaryMetadata, AReplayedRequestHearsIt) {
  const auto heard = heard_of("status-bin", "\0\0\xff"s);
  EXPECT_EQ(heard.headers, (http2::HeaderList{{":status", "200"}, {"status-bin", "\0\0\xff"s}}));
  EXPECT_EQ(heard.closed_with, uint32_t{NGHTTP2_NO_ERROR});
}

TEST(BinaryMetadata, OtherInvalidHeadersStillBreakTheAnswer) {
  EXPECT_EQ(heard_of("status", "\0\0\xff"s).closed_with, uint32_t{NGHTTP2_PROTOCOL_ERROR});
}

}  // namespace
}  // namespace ztape::replay
