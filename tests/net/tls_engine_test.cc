#include "net/tls_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/net/tls_fixtures.h"

namespace ztape::net {
namespace {

using Step = TlsEngine::Step;
using Read = TlsEngine::Read;

std::string text_of(const Slice& slice) {
  return {reinterpret_cast<const char*>(slice.data()), slice.size()};
}

std::string random_bytes(std::size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// One end, and what came out of it.
struct End {
  template <typename Handshake>
  End(std::shared_ptr<TlsContext> context, const Handshake& handshake) : engine(std::move(context), handshake) {}

  TlsEngine engine;
  Step step = Step::needs_input;
  Read last = Read::needs_input;
  std::string received;
  bool ended = false;

  // The handshake, then everything that can be read.
  void advance() {
    if (step == Step::needs_input) step = engine.step();
    while (step == Step::done) {
      Slice plaintext;
      last = engine.read(plaintext);
      if (last != Read::plaintext) break;
      received += text_of(plaintext);
    }
    if (last == Read::ended) ended = true;
  }
};

// Gives `to` what waits at `from` in pieces of `piece` bytes at most. Whether there was anything.
bool carry(End& from, End& to, std::size_t piece) {
  const auto output = from.engine.take_output();
  for (const auto& slice : output) {
    for (std::size_t at = 0; at < slice.size(); at += piece) {
      to.engine.feed(slice.subslice(at, std::min(piece, slice.size() - at)));
      to.advance();
    }
  }
  return !output.empty();
}

void exchange(End& client, End& server, std::size_t piece = 1 << 20) {
  client.advance();
  for (bool any = true; any;) {
    any = carry(client, server, piece);
    any = carry(server, client, piece) || any;
  }
}

const TlsClientHandshake kToLocalhost{.server_name = "localhost", .alpn = {"h2"}};
const TlsServerHandshake kH2{.alpn = {"h2", "http/1.1"}, .wait_for_answer = false};

TEST(TlsEngine, BothEndsAgreeAndSayOnWhat) {
  End client(client_context(), kToLocalhost), server(server_context(), kH2);
  exchange(client, server);
  ASSERT_EQ(client.step, Step::done) << client.engine.failure();
  ASSERT_EQ(server.step, Step::done) << server.engine.failure();
  const auto at_client = client.engine.facts();
  const auto at_server = server.engine.facts();
  EXPECT_EQ(at_client.version, "TLSv1.3");
  EXPECT_EQ(at_client.cipher, at_server.cipher);
  EXPECT_EQ(at_client.alpn, "h2");
  EXPECT_EQ(at_server.alpn, "h2");
  EXPECT_EQ(at_client.server_name, "localhost");
  EXPECT_EQ(at_server.server_name, "localhost");
  EXPECT_EQ(at_client.verification, "ok");
  EXPECT_EQ(at_server.verification, "not asked for");
}

class TlsEngineCuts : public testing::TestWithParam<std::size_t> {};

TEST_P(TlsEngineCuts, PlaintextIsTheSameHoweverTheCiphertextIsCut) {
  const std::size_t piece = GetParam();
  End client(client_context(), kToLocalhost), server(server_context(), kH2);
  exchange(client, server, piece);
  ASSERT_EQ(server.step, Step::done) << server.engine.failure();
  const auto up = random_bytes(70'000, 1), down = random_bytes(50'000, 2);
  const Slice pieces[] = {Slice::copy_of(up.substr(0, 1)), Slice{}, Slice::copy_of(up.substr(1))};
  client.engine.write(pieces);
  const Slice answer = Slice::copy_of(down);
  server.engine.write({&answer, 1});
  client.engine.close_notify();
  exchange(client, server, piece);
  EXPECT_TRUE(server.received == up);
  EXPECT_TRUE(client.received == down);
  EXPECT_TRUE(server.ended);
  EXPECT_FALSE(client.ended);
  // The other direction goes on after the client's end.
  const Slice last = Slice::copy_of("last words");
  server.engine.write({&last, 1});
  server.engine.close_notify();
  exchange(client, server, piece);
  EXPECT_TRUE(client.received == down + "last words");
  EXPECT_TRUE(client.ended);
}

INSTANTIATE_TEST_SUITE_P(Sizes, TlsEngineCuts,
                         testing::Values(1, 2, 3, 4, 5, 6, 7, 13, 64, 1000, 16'383, 16'384, 16'385, 16'406, 1 << 20));

TEST(TlsEngine, EveryCutOfOneRecordInTwoGivesThePlaintextOnceItIsWhole) {
  End client(client_context(), kToLocalhost), server(server_context(), kH2);
  exchange(client, server);
  const std::string words = "forty-two bytes that are cut at every place";
  for (std::size_t cut = 1;; ++cut) {
    const Slice plain = Slice::copy_of(words);
    client.engine.write({&plain, 1});
    const auto output = client.engine.take_output();
    ASSERT_EQ(output.size(), 1U);
    if (cut >= output[0].size()) break;
    server.received.clear();
    server.engine.feed(output[0].subslice(0, cut));
    server.advance();
    EXPECT_EQ(server.received, "") << cut;
    server.engine.feed(output[0].subslice(cut, output[0].size() - cut));
    server.advance();
    EXPECT_EQ(server.received, words) << cut;
  }
}

TEST(TlsEngine, AServerMayWaitWithItsAnswerUntilItKnowsTheProtocol) {
  for (const std::string protocol : {"http/1.1", "h2", ""}) {
    End client(client_context(), TlsClientHandshake{.server_name = "localhost", .alpn = {"h2", "http/1.1"}});
    End server(server_context(), TlsServerHandshake{.alpn = {}, .wait_for_answer = true});
    exchange(client, server);
    ASSERT_EQ(server.step, Step::waits_for_answer);
    EXPECT_TRUE(server.engine.take_output().empty());
    EXPECT_EQ(server.engine.hello().server_name, "localhost");
    EXPECT_EQ(server.engine.hello().alpn, (std::vector<std::string>{"h2", "http/1.1"}));
    server.engine.answer(protocol);
    server.step = Step::needs_input;
    server.advance();
    exchange(client, server);
    ASSERT_EQ(client.step, Step::done) << client.engine.failure();
    EXPECT_EQ(client.engine.facts().alpn, protocol);
    EXPECT_EQ(server.engine.facts().alpn, protocol);
  }
}

TEST(TlsEngine, AClientWithoutAlpnGetsNone) {
  End client(client_context(), TlsClientHandshake{.server_name = "localhost", .alpn = {}});
  End server(server_context(), kH2);
  exchange(client, server);
  ASSERT_EQ(server.step, Step::done);
  EXPECT_EQ(client.engine.facts().alpn, "");
}

TEST(TlsEngine, ProtocolsThatNobodyHereSpeaksAreRefusedByBothNames) {
  End client(client_context(), TlsClientHandshake{.server_name = "localhost", .alpn = {"spdy/1"}});
  End server(server_context(), kH2);
  exchange(client, server);
  EXPECT_EQ(server.step, Step::failed);
  EXPECT_EQ(server.engine.failure(), "the wallet offers ALPN spdy/1; this end speaks h2, http/1.1");
  EXPECT_EQ(client.engine.failure(),
            "the server speaks none of the protocols that were offered (alert: no application protocol): spdy/1");
}

TEST(TlsEngine, AWrongCaFailsAtBothEndsWithItsReason) {
  End client(client_context({.ca = TlsFiles::get().other_ca.certificate, .certificate = "", .key = ""}), kToLocalhost);
  End server(server_context(), kH2);
  exchange(client, server);
  EXPECT_EQ(client.engine.failure(), "the certificate does not verify: signed by a CA that is not trusted here");
  EXPECT_EQ(server.engine.failure(), "the wallet does not accept this side's certificate (alert: unknown CA)");
}

TEST(TlsEngine, AWrongNameFailsAndShowsWhomTheCertificateIsFor) {
  for (const std::string name : {"zec.example.org", "127.0.0.2"}) {
    End client(client_context(), TlsClientHandshake{.server_name = name, .alpn = {"h2"}});
    End server(server_context(), kH2);
    exchange(client, server);
    EXPECT_EQ(client.engine.failure(),
              "the certificate does not verify: the certificate is for localhost, 127.0.0.1, not for " + name);
  }
}

TEST(TlsEngine, AnAddressIsVerifiedAsOneAndIsNoServerName) {
  End client(client_context(), TlsClientHandshake{.server_name = "127.0.0.1", .alpn = {"h2"}});
  End server(server_context(), kH2);
  exchange(client, server);
  ASSERT_EQ(client.step, Step::done) << client.engine.failure();
  EXPECT_EQ(client.engine.facts().verification, "ok");
  EXPECT_EQ(server.engine.facts().server_name, "");
}

TEST(TlsEngine, InsecureGoesOnAndStillSaysWhatIsWrong) {
  End client(client_context({.ca = "", .certificate = "", .key = "", .insecure = true}), kToLocalhost);
  End server(server_context(), kH2);
  exchange(client, server);
  ASSERT_EQ(client.step, Step::done) << client.engine.failure();
  EXPECT_EQ(client.engine.facts().verification, "signed by a CA that is not trusted here");
}

TEST(TlsEngine, PlainHttpIsNamed) {
  for (const auto& [bytes, spoken] : {std::pair{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2"},
                                      std::pair{"POST / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1"}}) {
    End server(server_context(), kH2);
    server.engine.feed(Slice::copy_of(std::string_view(bytes)));
    server.advance();
    EXPECT_EQ(server.step, Step::failed);
    EXPECT_EQ(server.engine.failure(),
              std::string("the wallet speaks plain ") + spoken + " to a TLS port; its URL should begin with https://");
  }
  const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
  for (const auto& [bytes, spoken] :
       {std::pair{settings, "HTTP/2"}, std::pair{std::string("HTTP/1.1 400 Bad Request\r\n"), "HTTP/1.1"}}) {
    End client(client_context(), kToLocalhost);
    client.advance();
    client.engine.feed(Slice::copy_of(bytes));
    client.advance();
    EXPECT_EQ(client.engine.failure(),
              std::string("the server speaks plain ") + spoken + ", not TLS; its URL should begin with http://");
  }
}

TEST(TlsEngine, NoiseIsAFailureAndNothingWorse) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (uint32_t i = 0; i < 200; ++i) {
    End server(server_context(), kH2);
    server.engine.feed(Slice::copy_of(random_bytes(200 + i, seed + i)));
    server.advance();
    server.engine.feed(Slice::copy_of(std::string(20'000, 'x')));
    server.advance();
    EXPECT_EQ(server.step, Step::failed);
    EXPECT_NE(server.engine.failure(), "");
  }
}

TEST(TlsEngine, AFlippedBitInARecordIsAFailureAfterThePlaintextBeforeIt) {
  End client(client_context(), kToLocalhost), server(server_context(), kH2);
  exchange(client, server);
  const Slice good = Slice::copy_of("good"), bad = Slice::copy_of("bad");
  client.engine.write({&good, 1});
  auto first = client.engine.take_output();
  client.engine.write({&bad, 1});
  auto second = text_of(client.engine.take_output().at(0));
  second.back() = static_cast<char>(second.back() ^ 1);
  server.engine.feed(first.at(0));
  server.engine.feed(Slice::copy_of(second));
  server.advance();
  EXPECT_EQ(server.received, "good");
  EXPECT_EQ(server.last, Read::failed);
  EXPECT_EQ(server.engine.failure(), "decryption failed or bad record mac");
  exchange(client, server);  // the alert
  EXPECT_EQ(client.engine.failure(), "the server ended the connection (alert: bad record mac)");
}

}  // namespace
}  // namespace ztape::net
