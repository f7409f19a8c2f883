// The same over TLS: grpc++ sees no difference, and the recording has the plaintext of every call.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "tests/peer/peer_run.h"
#include "tests/support/certificates.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

struct Files {
  TemporaryDirectory directory;
  Certificate ca = make_ca(directory.path(), "ca");
  Certificate server = make_certificate(directory.path(), "server", ca);
  static const Files& get() {
    static const Files files;
    return files;
  }
};

struct Sides {
  bool wallet = false;
  bool indexer = false;
  std::string scenario;
};

void PrintTo(const Sides& sides, std::ostream* to) {
  *to << sides.scenario;
}

class TlsScenario : public testing::TestWithParam<Sides> {};

TEST_P(TlsScenario, IsTheSameThroughTheProxyAndRecordedWhole) {
  const auto& [wallet, indexer, scenario] = GetParam();
  const auto& files = Files::get();
  const TemporaryDirectory directory;
  const auto path = directory.file("peer.ztape");
  std::vector<std::string> server_options, proxy_options{"--when-disk-is-slow", "hold"};
  if (indexer) {
    server_options = {"--tls-cert", files.server.certificate, "--tls-key", files.server.key};
    proxy_options.insert(proxy_options.end(), {"--cacert", files.ca.certificate});
  }
  if (wallet) {
    proxy_options.insert(proxy_options.end(), {"--tls-cert", files.server.certificate, "--tls-key", files.server.key});
  }
  const auto url = [](bool tls, const std::string& address) { return (tls ? "https://" : "") + address; };
  PeerServer server(server_options);
  const auto direct = run_client(url(indexer, server.address()), scenario, files.ca.certificate);
  ASSERT_EQ(direct.status, 0) << direct.err;
  ASSERT_FALSE(direct.out.empty());

  ProxyProcess proxy(url(indexer, server.address()), path, proxy_options);
  const auto through = run_client(url(wallet, proxy.address()), scenario, files.ca.certificate);
  EXPECT_EQ(through.status, 0) << through.err;
  EXPECT_EQ(through.out, direct.out);
  EXPECT_EQ(proxy.stop(), 0);
  EXPECT_EQ(server.stop(), 0);

  const auto recording = read_recording(path);
  EXPECT_TRUE(recording.damage.empty());
  auto expected = expected_lines(direct.out);
  auto recorded = recorded_lines(recording);
  std::ranges::sort(expected);  // several threads: in no order
  std::ranges::sort(recorded);
  EXPECT_EQ(recorded, expected);
  for (const auto& connection : recording.connections) {
    const auto& open = connection.open;
    EXPECT_EQ(open.has_downstream_tls(), wallet);
    EXPECT_EQ(open.has_upstream_tls(), indexer);
    // grpc++ at both ends agrees on its own "grpc-exp" when nobody is between them, and so it does through the proxy.
    const std::string agreed = wallet && indexer ? "grpc-exp" : "h2";
    EXPECT_EQ(open.downstream_tls().alpn(), wallet ? agreed : "");
    EXPECT_EQ(open.upstream_tls().alpn(), indexer ? agreed : "");
    EXPECT_EQ(open.upstream_tls().verification(), indexer ? "ok" : "");
  }
  const auto verified = run({ztape(), "verify", "-r", path});
  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
}

std::vector<Sides> all_sides() {
  std::vector<Sides> all;
  for (const char* scenario : {"unary", "session", "server_stream", "bidi", "many_messages", "parallel", "cancel",
                               "error_middle", "large_metadata"}) {
    all.push_back({true, true, scenario});
  }
  for (const char* scenario : {"session", "bidi"}) {
    all.push_back({true, false, scenario});
    all.push_back({false, true, scenario});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Peer, TlsScenario, testing::ValuesIn(all_sides()), [](const auto& one) {
  return std::string(one.param.wallet ? "Tls" : "Plain") + "ToProxy" + (one.param.indexer ? "Tls" : "Plain") +
         "ToIndexer_" + one.param.scenario;
});

}  // namespace
}  // namespace ztape::test
