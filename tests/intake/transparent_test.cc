// `ztape proxy --transparent` with the rules of docs/transparent.md, as they stand there, in network namespaces:
// a wallet's machine, the proxy's machine in the middle, an indexer's machine.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "tests/support/certificates.h"
#include "tests/support/fixture.h"
#include "tests/support/network_namespace.h"
#include "tests/support/recorded_bytes.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

// The commands under "Set up:" or "Undo:" of a section of docs/transparent.md, with a user that every machine has.
std::string commands(const std::string& section, const std::string& tool, const std::string& step) {
  std::istringstream page(read_file(ZTAPE_SOURCE_DIR "/docs/transparent.md"));
  std::string at_section, at_tool, at_step, found;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) at_section = line.substr(3), at_tool = at_step = "";
    if (line.starts_with("### ")) at_tool = line.substr(4), at_step = "";
    if (line == "Set up:" || line == "Undo:") at_step = line;
    const bool wanted = at_section.starts_with(section) && at_tool == tool && at_step == step + ":";
    if (wanted && line.starts_with("    ")) found += line.substr(4) + "\n";
  }
  if (found.empty()) throw std::runtime_error("no such commands in docs/transparent.md: " + section + ", " + tool);
  for (const std::string name : {"\"ztape\"", "--uid-owner ztape"}) {
    for (auto at = found.find(name); at != std::string::npos; at = found.find(name, at)) {
      found.replace(at + name.find("ztape"), 5, "nobody");
    }
  }
  return found;
}

// docs/transparent.md: where indexers answer, and where the proxy listens.
constexpr const char* kIndexerPort = ":9067";
constexpr const char* kProxyPort = ":9167";

class Transparent : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = NetworkNamespace::missing(); !why.empty()) GTEST_SKIP() << why;
    for (const char* program : {"nft", "iptables", "ip6tables"}) {
      if (std::system(("command -v " + std::string(program) + " >/dev/null").c_str()) != 0) {
        GTEST_SKIP() << program << " is not installed";
      }
    }
    wallets_.emplace();
    middle_.emplace();
    indexers_.emplace();
    connect_by_cable({*wallets_, "to_middle", "10.9.1.1/24", "fd09:1::1/64"},
                     {*middle_, "to_wallets", "10.9.1.2/24", "fd09:1::2/64"});
    connect_by_cable({*middle_, "to_indexers", "10.9.2.1/24", "fd09:2::1/64"},
                     {*indexers_, "to_middle", "10.9.2.2/24", "fd09:2::2/64"});
    wallets_->shell("ip route add default via 10.9.1.2\nip route add default via fd09:1::2");
    indexers_->shell("ip route add default via 10.9.2.1\nip route add default via fd09:2::1");
    middle_->shell("echo 1 >/proc/sys/net/ipv4/ip_forward\necho 1 >/proc/sys/net/ipv6/conf/all/forwarding");
  }

  void start(const std::vector<std::string>& more = {}, const std::string& listen = kProxyPort) {
    auto words = middle_->launcher();
    words.insert(words.end(), {ztape(), "proxy", "--transparent", "--listen", listen, "-w", file_});
    words.insert(words.end(), more.begin(), more.end());
    proxy_.emplace(words);
    EXPECT_NE(proxy_->line().find(", upstream the original destination, recording to "), std::string::npos);
  }

  // A wallet at `from` asks the indexer at `address`, which answers; `number` is the connection's in the capture.
  void exchange(const NetworkNamespace& from, const NetworkNamespace& at, const std::string& address) {
    std::optional<ListeningSocket> listener;
    Socket wallet, server;
    at.inside([&] { listener.emplace(address); });
    from.inside([&] { wallet = Socket::connect(address); });
    wallet.send("to " + address);
    server = listener->accept();
    EXPECT_EQ(server.receive(3 + address.size()), "to " + address);
    server.send("from " + address);
    EXPECT_EQ(wallet.receive(5 + address.size()), "from " + address);
    expected_.push_back({address, wallet.local_text()});
    wallet.close();
    EXPECT_EQ(server.receive_all(), "");
  }

  // Each exchange went through the proxy, on its own.
  void expect_recorded(int status = 0) {
    proxy_->signal(SIGTERM);
    EXPECT_EQ(proxy_->wait(), status) << proxy_->stderr_text();
    const auto traffic = read_traffic(file_);
    ASSERT_EQ(traffic.connections.size(), expected_.size());
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      const auto& connection = traffic.connections.at(i + 1);
      EXPECT_EQ(connection.open.upstream_url(), "http://" + expected_[i].address);
      EXPECT_EQ(connection.open.upstream_peer(), expected_[i].address);
      EXPECT_EQ(connection.open.downstream_peer(), expected_[i].wallet);
      EXPECT_EQ(connection.bytes[0], "to " + expected_[i].address);
      EXPECT_EQ(connection.bytes[1], "from " + expected_[i].address);
    }
  }

  struct Exchange {
    std::string address, wallet;
  };
  const std::string ipv4_ = "10.9.2.2" + std::string(kIndexerPort);
  const std::string ipv6_ = "[fd09:2::2]" + std::string(kIndexerPort);
  std::optional<NetworkNamespace> wallets_, middle_, indexers_;
  TemporaryDirectory folder_;
  std::string file_ = folder_.file("a.ztape");
  std::optional<ChildProcess> proxy_;
  std::vector<Exchange> expected_;
};

class TransparentRules : public Transparent, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Both, TransparentRules, testing::Values("nftables", "iptables"),
                         [](const auto& tool) { return std::string(tool.param); });

TEST_P(TransparentRules, RedirectOfWhatComesFromOtherMachines) {
  start();
  middle_->shell(commands("REDIRECT: wallets on other", GetParam(), "Set up"));
  exchange(*wallets_, *indexers_, ipv4_);
  exchange(*wallets_, *indexers_, ipv6_);
  // The indexer may be on the proxy's own machine.
  exchange(*wallets_, *middle_, "10.9.1.2" + std::string(kIndexerPort));
  exchange(*wallets_, *middle_, "[fd09:1::2]" + std::string(kIndexerPort));
  const auto recorded = expected_;
  middle_->shell(commands("REDIRECT: wallets on other", GetParam(), "Undo"));
  exchange(*wallets_, *indexers_, ipv4_);
  exchange(*wallets_, *indexers_, ipv6_);
  expected_ = recorded;
  expect_recorded();
}

TEST_P(TransparentRules, RedirectOfWhatThisMachineOpensLeavesTheProxysUserOut) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for --user";
  start({"--user", "nobody"});
  middle_->shell(commands("REDIRECT: wallets on this", GetParam(), "Set up"));
  exchange(*middle_, *indexers_, ipv4_);
  exchange(*middle_, *indexers_, ipv6_);
  exchange(*middle_, *middle_, "127.0.0.1" + std::string(kIndexerPort));
  const auto recorded = expected_;
  middle_->shell(commands("REDIRECT: wallets on this", GetParam(), "Undo"));
  exchange(*middle_, *indexers_, ipv4_);
  exchange(*middle_, *indexers_, ipv6_);
  expected_ = recorded;
  expect_recorded();
}

TEST_P(TransparentRules, TproxyOfWhatComesFromOtherMachines) {
  start();
  middle_->shell(commands("TPROXY: wallets on other", GetParam(), "Set up"));
  exchange(*wallets_, *indexers_, ipv4_);
  exchange(*wallets_, *indexers_, ipv6_);
  const auto recorded = expected_;
  middle_->shell(commands("TPROXY: wallets on other", GetParam(), "Undo"));
  exchange(*wallets_, *indexers_, ipv4_);
  exchange(*wallets_, *indexers_, ipv6_);
  expected_ = recorded;
  expect_recorded();
  for (const auto& [number, connection] : read_traffic(file_).connections) {
    EXPECT_EQ(connection.open.downstream_local(), connection.open.upstream_peer()) << number;
  }
  EXPECT_EQ(proxy_->stderr_text().find("TPROXY"), std::string::npos);
}

TEST_F(Transparent, TproxyWorksOnAnIpv4ListenerAndAfterTheChangeOfUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for --user";
  start({"--user", "nobody"}, "0.0.0.0" + std::string(kProxyPort));
  middle_->shell(commands("TPROXY: wallets on other", "nftables", "Set up"));
  exchange(*wallets_, *indexers_, ipv4_);
  exchange(*wallets_, *indexers_, ipv4_);
  expect_recorded();
}

TEST_F(Transparent, AConnectionStraightToTheProxyIsClosedToldAndCounted) {
  start();
  middle_->shell(commands("REDIRECT: wallets on other", "nftables", "Set up"));
  for (const std::string host : {"10.9.1.2", "[fd09:1::2]", "10.9.2.1"}) {
    Socket wallet;
    wallets_->inside([&] { wallet = Socket::connect(host + kProxyPort); });
    std::string error;
    EXPECT_EQ(wallet.receive_all(&error), "");
    EXPECT_EQ(error, "ECONNRESET");
    proxy_->wait_for_stderr("a connection from " + wallet.local_text() + " is closed: " + host + kProxyPort +
                            ": it was not redirected");
  }
  exchange(*wallets_, *indexers_, ipv4_);  // the others go on
  expect_recorded();
  EXPECT_NE(proxy_->stdout_text().find("closed for want of a destination: 3 connections"), std::string::npos);
}

TEST_F(Transparent, ARuleThatTakesTheProxysOwnConnectionsTooIsNoticed) {
  start();  // as root, not as the user that the rule leaves out
  middle_->shell(commands("REDIRECT: wallets on this", "nftables", "Set up"));
  std::optional<ListeningSocket> listener;
  indexers_->inside([&] { listener.emplace(ipv4_); });
  Socket wallet;
  middle_->inside([&] { wallet = Socket::connect(ipv4_); });
  std::string error;
  EXPECT_EQ(wallet.receive_all(&error), "");
  EXPECT_EQ(error, "ECONNRESET");
  proxy_->wait_for_stderr("it is the proxy's own connection, redirected to itself");
  proxy_->signal(SIGTERM);
  EXPECT_EQ(proxy_->wait(), 3) << proxy_->stderr_text();
  EXPECT_EQ(read_traffic(file_).connections.size(), 1u);
}

TEST_F(Transparent, WithoutTheRightToUseTproxyItSaysSoAndRedirectWorks) {
  if (std::system("command -v setpriv >/dev/null") != 0) GTEST_SKIP() << "setpriv is not installed";
  auto words = middle_->launcher();
  words.insert(words.end(), {"setpriv", "--bounding-set=-net_admin,-net_raw", "--inh-caps=-net_admin,-net_raw", ztape(),
                             "proxy", "--transparent", "--listen", kProxyPort, "-w", file_});
  proxy_.emplace(words);
  proxy_->line();
  middle_->shell(commands("REDIRECT: wallets on other", "nftables", "Set up"));
  exchange(*wallets_, *indexers_, ipv4_);
  proxy_->wait_for_stderr("REDIRECT rules work, TPROXY rules do not: those need CAP_NET_RAW");
  expect_recorded();
}

// Wallets that want TLS of an indexer get it of the proxy, and the indexer gets it of the proxy in their name.
class TransparentTls : public Transparent {
 protected:
  void SetUp() override {
    Transparent::SetUp();
    if (IsSkipped()) return;
    ca_ = make_ca(folder_.path(), "ca");
    const auto proxys = make_certificate(folder_.path(), "proxys", ca_, kNames);
    start({"--tls-cert", proxys.certificate, "--tls-key", proxys.key, "--cacert", ca_.certificate});
    middle_->shell(commands("REDIRECT: wallets on other", "nftables", "Set up"));
    std::ofstream(folder_.file("question")) << kQuestion;
    std::ofstream(folder_.file("answer")) << kAnswer;
  }

  ChildProcess peer(const NetworkNamespace& at, const std::vector<std::string>& words) {
    auto all = at.launcher();
    all.insert(all.end(), {"/usr/bin/python3", "-B", ZTAPE_SOURCE_DIR "/tests/e2e/tls_peer.py"});
    all.insert(all.end(), words.begin(), words.end());
    return ChildProcess(all);
  }

  // What the wallet and the indexer say of their conversation.
  std::pair<std::string, std::string> converse(const std::string& address, const std::string& name,
                                               const Certificate& indexers) {
    auto indexer = peer(*indexers_, {"server", indexers.certificate, indexers.key, "h2", folder_.file("answer"),
                                     folder_.file("got_by_indexer"), "notify", "", address});
    EXPECT_EQ(indexer.line(), address);
    auto wallet = peer(*wallets_, {"client", address, ca_.certificate, name, "h2", folder_.file("question"),
                                   folder_.file("got_by_wallet"), std::to_string(std::string(kAnswer).size())});
    const std::string of_wallet = wallet.line();
    EXPECT_EQ(wallet.wait(), 0) << wallet.stderr_text();
    return {of_wallet, indexer.line(1)};
  }

  static constexpr const char* kNames = "DNS:indexer.example,IP:10.9.2.2,IP:fd09:2::2";
  static constexpr const char* kQuestion = "a question that nobody else may read";
  static constexpr const char* kAnswer = "an answer that nobody else may read";
  Certificate ca_;
};

TEST_F(TransparentTls, GoesOnInTlsToWhereTheWalletWantedToGoAndIsRecordedAsPlaintext) {
  const auto indexers = make_certificate(folder_.path(), "indexers", ca_, kNames);
  const std::vector<std::pair<std::string, std::string>> wanted{
      {ipv4_, "indexer.example"}, {ipv6_, "indexer.example"}, {ipv4_, "10.9.2.2"}};
  for (const auto& [address, name] : wanted) {
    const auto [of_wallet, of_indexer] = converse(address, name, indexers);
    EXPECT_EQ(of_wallet, "TLSv1.3 h2 open");
    EXPECT_EQ(of_indexer.substr(0, 10), "TLSv1.3 h2");
    EXPECT_EQ(read_file(folder_.file("got_by_indexer")), kQuestion);
    EXPECT_EQ(read_file(folder_.file("got_by_wallet")), kAnswer);
  }
  proxy_->signal(SIGTERM);
  EXPECT_EQ(proxy_->wait(), 0) << proxy_->stderr_text();
  const auto traffic = read_traffic(file_);
  ASSERT_EQ(traffic.connections.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto& connection = traffic.connections.at(i + 1);
    EXPECT_EQ(connection.open.upstream_url(), "https://" + wanted[i].first);
    EXPECT_EQ(connection.open.upstream_peer(), wanted[i].first);
    EXPECT_EQ(connection.open.upstream_tls().verification(), "ok");
    // An address is no name to ask for: it is what the certificate is for.
    const bool by_address = wanted[i].second == "10.9.2.2";
    EXPECT_EQ(connection.open.upstream_tls().server_name(), by_address ? "" : wanted[i].second);
    EXPECT_EQ(connection.bytes[0], kQuestion);
    EXPECT_EQ(connection.bytes[1], kAnswer);
  }
}

TEST_F(TransparentTls, AnIndexerThatIsNotWhomTheWalletAskedForIsNotTalkedTo) {
  const auto others = make_certificate(folder_.path(), "others", ca_, "DNS:other.example");
  const auto [of_wallet, of_indexer] = converse(ipv4_, "indexer.example", others);
  EXPECT_TRUE(of_wallet.starts_with("no handshake: ")) << of_wallet;
  EXPECT_TRUE(of_indexer.starts_with("no handshake: ")) << of_indexer;
  proxy_->signal(SIGTERM);
  EXPECT_EQ(proxy_->wait(), 3) << proxy_->stderr_text();
  for (const auto& [number, connection] : read_traffic(file_).connections) {
    EXPECT_EQ(connection.bytes[0] + connection.bytes[1], "") << number;
  }
}

TEST(TransparentWords, NoOneNameIsThatOfAllDestinations) {
  const TemporaryDirectory folder;
  const auto ended = run({ztape(), "proxy", "--transparent", "--tls-self-signed", folder.path(), "--authority", "a"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.err.find("--authority"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("for the name that the wallet asks for"), std::string::npos) << ended.err;
}

TEST(TransparentWords, AnUpstreamHasNoPlaceBesideIt) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--upstream", "127.0.0.1:1"}, {"--route", "127.0.0.1:0=127.0.0.1:1"}}) {
    std::vector<std::string> all{ztape(), "proxy", "--transparent"};
    all.insert(all.end(), words.begin(), words.end());
    const auto ended = run(all);
    EXPECT_EQ(ended.status, 2);
    EXPECT_NE(ended.err.find("each connection brings its own destination"), std::string::npos) << ended.err;
  }
}

}  // namespace
}  // namespace ztape::test
