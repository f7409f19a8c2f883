// `ztape proxy` with TLS, its peers by Python's ssl module and by the openssl program.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/support/certificates.h"
#include "tests/support/child_process.h"
#include "tests/support/proxy_process.h"
#include "tests/support/recorded_bytes.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

struct Files {
  TemporaryDirectory directory;
  Certificate ca = make_ca(directory.path(), "ca");
  Certificate other_ca = make_ca(directory.path(), "other-ca");
  Certificate server = make_certificate(directory.path(), "server", ca);
  Certificate renewed = make_certificate(directory.path(), "renewed", ca);
  Certificate client = make_certificate(directory.path(), "client", ca, "DNS:wallet-1");
  static const Files& get() {
    static const Files files;
    return files;
  }
};

using Words = std::vector<std::string>;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string text_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const Words kServe{"--tls-cert", Files::get().server.certificate, "--tls-key", Files::get().server.key};
const Words kTrust{"--cacert", Files::get().ca.certificate};

class ProxyTls : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.file(name); }

  std::string random_file(const std::string& name, std::size_t bytes, uint32_t seed) {
    std::mt19937 random(seed);
    std::string text(bytes, '\0');
    for (auto& byte : text) byte = static_cast<char>(random());
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  // tls_peer.py: the server, listening.
  std::unique_ptr<ChildProcess> server(const std::string& alpn, const std::string& end = "notify",
                                       const Certificate& certificate = Files::get().server,
                                       const std::string& client_ca = "") {
    auto process = std::make_unique<ChildProcess>(Words{"/usr/bin/python3", "-B", ZTAPE_TESTS_DIR "/e2e/tls_peer.py",
                                                        "server", certificate.certificate, certificate.key, alpn,
                                                        path("answer"), path("got_by_server"), end, client_ca});
    process->line();
    return process;
  }
  static std::string url(ChildProcess& server) { return "https://" + server.line(); }

  std::unique_ptr<ChildProcess> client(const std::string& address, const std::string& alpn, std::size_t count,
                                       const std::string& end = "notify", const std::string& name = "localhost",
                                       const std::string& ca = Files::get().ca.certificate) {
    return std::make_unique<ChildProcess>(Words{"/usr/bin/python3", "-B", ZTAPE_TESTS_DIR "/e2e/tls_peer.py", "client",
                                                address, ca, name, alpn, path("question"), path("got_by_client"),
                                                std::to_string(count), end});
  }

  std::string capture() const { return path("tls.ztape"); }
  RecordedTraffic::Connection only_connection() const {
    const auto traffic = read_traffic(capture());
    EXPECT_TRUE(traffic.whole);
    EXPECT_EQ(traffic.connections.size(), 1U);
    return traffic.connections.begin()->second;
  }

  TemporaryDirectory directory_;
};

TEST_F(ProxyTls, TlsOnBothSidesRecordsExactlyThePlaintextThatThePeersSent) {
  for (const std::string tls : {"TLSv1.3", "TLSv1.2"}) {
    random_file("question", 3'000'000, 1);
    random_file("answer", 5'000'000, 2);
    auto indexer = server("h2");
    ProxyProcess proxy(url(*indexer), capture(), with(with(kServe, kTrust), {"--force"}));
    // openssl's client: it leaves when its input ends, so that it is kept open until the answer is there.
    if (tls == "TLSv1.2") {
      const auto finished =
          run({"sh", "-c",
               "(cat " + path("question") + "; until [ \"$(stat -c %s " + path("got_by_client") +
                   ")\" = 5000000 ]; do sleep 0.01; done) | openssl s_client -quiet -no_ign_eof -nocommands -tls1_2 "
                   "-alpn h2 -servername localhost "
                   "-verify_return_error -CAfile " +
                   Files::get().ca.certificate + " -connect " + proxy.address() + " >" + path("got_by_client")});
      EXPECT_EQ(finished.status, 0) << finished.err;
    } else {
      auto wallet = client(proxy.address(), "h2", 5'000'000);
      EXPECT_EQ(wallet->line(), "TLSv1.3 h2 open");
      EXPECT_EQ(wallet->wait(), 0);
    }
    EXPECT_EQ(indexer->line(1).substr(0, 10), "TLSv1.3 h2");  // the two sides need not speak the same version
    EXPECT_EQ(indexer->wait(), 0);
    EXPECT_EQ(proxy.stop(), 0) << proxy.process().stderr_text();
    const auto question = text_in(path("question")), answer = text_in(path("answer"));
    EXPECT_TRUE(text_in(path("got_by_server")) == question);
    EXPECT_TRUE(text_in(path("got_by_client")) == answer);
    const auto connection = only_connection();
    EXPECT_TRUE(connection.bytes[0] == question);
    EXPECT_TRUE(connection.bytes[1] == answer);
    EXPECT_EQ(connection.open.downstream_tls().version(), tls);
    EXPECT_EQ(connection.open.downstream_tls().alpn(), "h2");
    EXPECT_EQ(connection.open.downstream_tls().server_name(), "localhost");
    EXPECT_EQ(connection.open.upstream_tls().version(), "TLSv1.3");
    EXPECT_EQ(connection.open.upstream_tls().verification(), "ok");
    EXPECT_EQ(connection.close.error(), "");
    EXPECT_EQ(run({ztape(), "verify", "-r", capture()}).status, 0);
    const auto page = run({ztape(), "show", "-r", capture()}).out;
    EXPECT_NE(page.find("TLS: indexer by TLSv1.3, h2, certificate verified (1 connection)\n"), std::string::npos)
        << page;
    EXPECT_NE(page.find("TLS: wallets by " + tls + ", h2, for localhost (1 connection)\n"), std::string::npos) << page;
    const auto json = run({ztape(), "show", "--json", "-r", capture()}).out;
    const auto at = json.find("\"downstream_tls\": {");
    ASSERT_NE(at, std::string::npos) << json;
    EXPECT_NE(json.find("\"version\": \"" + tls + "\"", at), std::string::npos) << json;
  }
}

TEST_F(ProxyTls, ATlsWalletReachesAPlaintextIndexer) {
  random_file("question", 100'000, 3);
  random_file("answer", 200'000, 4);
  ListeningSocket indexer;
  ProxyProcess proxy("http://" + indexer.address(), capture(), kServe);
  auto wallet = client(proxy.address(), "http/1.1,h2", 200'000);
  auto peer = indexer.accept();
  EXPECT_TRUE(peer.receive(100'000) == text_in(path("question")));
  peer.send(text_in(path("answer")));
  EXPECT_EQ(peer.receive_all(), "");  // the wallet's close_notify is a FIN here
  peer.close();
  EXPECT_EQ(wallet->line(), "TLSv1.3 h2 open");  // h2 before http/1.1, whatever the order
  EXPECT_EQ(wallet->wait(), 0);
  EXPECT_EQ(proxy.stop(), 0);
  EXPECT_TRUE(text_in(path("got_by_client")) == text_in(path("answer")));
  const auto connection = only_connection();
  EXPECT_TRUE(connection.bytes[0] == text_in(path("question")));
  EXPECT_TRUE(connection.bytes[1] == text_in(path("answer")));
  EXPECT_FALSE(connection.open.has_upstream_tls());
}

// The wallet's first bytes decide what is asked for, however they are cut.
TEST_F(ProxyTls, APlaintextWalletReachesAnHttpsIndexerWithTheProtocolItSpeaks) {
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  struct Row {
    std::string first;
    std::string alpn;
  };
  for (const auto& [first, alpn] :
       {Row{preface + "and more", "h2"}, Row{"POST / HTTP/1.1\r\n\r\n", "http/1.1"}, Row{"PRI *", "h2"}}) {
    random_file("answer", 1000, 5);
    auto indexer = server("h2,http/1.1");
    ProxyProcess proxy(url(*indexer), capture(), with(kTrust, {"--force"}));
    auto wallet = Socket::connect(proxy.address());
    wallet.set_nodelay();
    for (const char byte : first) wallet.send(std::string(1, byte));
    const bool whole = first != "PRI *";
    if (!whole) wallet.shutdown_write();
    EXPECT_TRUE(wallet.receive(1000) == text_in(path("answer")));
    if (whole) wallet.shutdown_write();
    EXPECT_EQ(wallet.receive_all(), "");
    EXPECT_EQ(indexer->line(1), "TLSv1.3 " + alpn + " notify");
    EXPECT_EQ(indexer->wait(), 0);
    EXPECT_EQ(proxy.stop(), 0) << proxy.process().stderr_text();
    EXPECT_EQ(text_in(path("got_by_server")), first);
    const auto connection = only_connection();
    EXPECT_EQ(connection.bytes[0], first);
    EXPECT_TRUE(connection.bytes[1] == text_in(path("answer")));
    EXPECT_EQ(connection.open.upstream_tls().alpn(), alpn);
  }
}

TEST_F(ProxyTls, BothSidesGetTheProtocolThatTheIndexerChose) {
  struct Row {
    std::string wallet, indexer, agreed;
  };
  for (const auto& [offered, spoken, agreed] :
       {Row{"h2,http/1.1", "http/1.1", "http/1.1"}, Row{"spdy/3", "spdy/3", "spdy/3"}, Row{"-", "h2", "-"},
        Row{"h2", "-", "-"}}) {
    random_file("question", 10, 6);
    random_file("answer", 10, 7);
    auto indexer = server(spoken);
    ProxyProcess proxy(url(*indexer), capture(), with(with(kServe, kTrust), {"--force"}));
    auto wallet = client(proxy.address(), offered, 10);
    EXPECT_EQ(wallet->line(), "TLSv1.3 " + agreed + " open");
    EXPECT_EQ(indexer->line(1), "TLSv1.3 " + agreed + " notify");
    EXPECT_EQ(proxy.stop(), 0);
  }
}

TEST_F(ProxyTls, AnEndWithoutCloseNotifyStaysOneAndIsNoted) {
  for (const bool by_wallet : {true, false}) {
    random_file("question", 1000, 8);
    random_file("answer", 1000, 9);
    auto indexer = server("h2", by_wallet ? "notify" : "fin");
    ProxyProcess proxy(url(*indexer), capture(), with(with(kServe, kTrust), {"--force"}));
    auto wallet = client(proxy.address(), "h2", 1000, by_wallet ? "fin" : "notify");
    EXPECT_EQ(wallet->line(), "TLSv1.3 h2 open");
    const auto at_indexer = indexer->line(1);
    EXPECT_TRUE(at_indexer.ends_with(by_wallet ? "h2 fin" : "h2 notify")) << at_indexer;
    wallet->wait();
    indexer->wait();
    EXPECT_EQ(proxy.stop(), 0);
    const auto connection = only_connection();
    ASSERT_EQ(connection.ends.size(), 2U);
    for (const auto& end : connection.ends) {
      const bool from_wallet = end.direction() == capture::CLIENT_TO_SERVER;
      // An indexer by OpenSSL answers a truncated end with an alert: with or without a proxy.
      if (by_wallet && !from_wallet) continue;
      EXPECT_EQ(end.end(), capture::FIN);
      EXPECT_EQ(end.error(), from_wallet == by_wallet ? "no close_notify" : "");
    }
  }
}

TEST_F(ProxyTls, AWrongCaIsOneClearLineAndInTheCapture) {
  random_file("answer", 10, 1);
  auto indexer = server("h2");
  const auto address = indexer->line();
  ProxyProcess proxy(url(*indexer), capture(), with(kServe, {"--cacert", Files::get().other_ca.certificate}));
  auto wallet = client(proxy.address(), "h2", 10);
  EXPECT_TRUE(wallet->line().starts_with("no handshake: ")) << wallet->line();
  EXPECT_EQ(indexer->line(1), "no handshake: TLSV1_ALERT_UNKNOWN_CA");
  EXPECT_EQ(proxy.stop(), 3);
  const auto reason = address + ": TLS: the certificate does not verify: signed by a CA that is not trusted here";
  EXPECT_NE(proxy.process().stderr_text().find("connection 1: upstream " + reason), std::string::npos)
      << proxy.process().stderr_text();
  EXPECT_NE(proxy.process().stdout_text().find("not connected upstream: 1 connection"), std::string::npos);
  const auto connection = only_connection();
  EXPECT_TRUE(connection.closed);
  EXPECT_EQ(connection.close.error(), "upstream " + reason);
  EXPECT_EQ(connection.open.upstream_peer(), address);
  EXPECT_EQ(connection.bytes[0] + connection.bytes[1], "");
}

TEST_F(ProxyTls, AWrongNameFailsUntilTheAuthorityNamesTheRightOne) {
  random_file("question", 10, 1);
  random_file("answer", 10, 2);
  const auto certificate = make_certificate(directory_.path(), "named", Files::get().ca, "DNS:zec.example.org");
  {
    auto indexer = server("h2", "notify", certificate);
    ProxyProcess proxy(url(*indexer), capture(), with(kServe, kTrust));
    auto wallet = client(proxy.address(), "h2", 10);
    wallet->wait();
    EXPECT_EQ(proxy.stop(), 3);
    EXPECT_NE(only_connection().close.error().find("the certificate is for zec.example.org, not for 127.0.0.1"),
              std::string::npos);
  }
  auto indexer = server("h2", "notify", certificate);
  ProxyProcess proxy(url(*indexer), capture(),
                     with(with(kServe, kTrust), {"--authority", "zec.example.org:443", "--force"}));
  auto wallet = client(proxy.address(), "h2", 10);
  EXPECT_EQ(wallet->line(), "TLSv1.3 h2 open");
  wallet->wait();
  indexer->wait();
  EXPECT_EQ(proxy.stop(), 0);
  EXPECT_EQ(only_connection().open.upstream_tls().server_name(), "zec.example.org");
  EXPECT_EQ(only_connection().open.upstream_tls().verification(), "ok");
}

TEST_F(ProxyTls, InsecureGoesOnAndTheCaptureSaysWhatWasWrong) {
  random_file("question", 10, 1);
  random_file("answer", 10, 2);
  auto indexer = server("h2");
  ProxyProcess proxy(url(*indexer), capture(), with(kServe, {"-k"}));
  auto wallet = client(proxy.address(), "h2", 10);
  EXPECT_EQ(wallet->line(), "TLSv1.3 h2 open");
  wallet->wait();
  indexer->wait();
  EXPECT_EQ(proxy.stop(), 0);
  EXPECT_EQ(only_connection().open.upstream_tls().verification(), "signed by a CA that is not trusted here");
  EXPECT_NE(proxy.process().stderr_text().find("--insecure"), std::string::npos);
}

TEST_F(ProxyTls, AWalletThatRefusesTheCertificateIsRecordedWithItsReason) {
  ListeningSocket indexer;
  ProxyProcess proxy("http://" + indexer.address(), capture(), kServe);
  auto wallet = client(proxy.address(), "h2", 10, "notify", "localhost", Files::get().other_ca.certificate);
  EXPECT_EQ(wallet->line(), "no handshake: CERTIFICATE_VERIFY_FAILED");
  wallet->wait();
  proxy.process().wait_for_stderr("does not accept this side's certificate");
  EXPECT_EQ(proxy.stop(), 0);
  EXPECT_NE(proxy.process().stdout_text().find("no TLS handshake with the wallet: 1 connection"), std::string::npos);
  const auto connection = only_connection();
  EXPECT_EQ(connection.close.first_side(), capture::DOWNSTREAM);
  EXPECT_EQ(connection.close.error(), "downstream " + connection.open.downstream_peer() +
                                          ": TLS: the wallet does not accept this side's certificate (alert: unknown "
                                          "CA)");
  auto accepted = indexer.accept();  // the indexer sees a connection that says nothing
  EXPECT_EQ(accepted.receive_all(), "");
}

TEST_F(ProxyTls, PlainHttpOnTheTlsPortIsNamedAndNothingCrosses) {
  ListeningSocket indexer;
  ProxyProcess proxy("http://" + indexer.address(), capture(), kServe);
  auto wallet = Socket::connect(proxy.address());
  wallet.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  wallet.receive_all();
  proxy.process().wait_for_stderr("speaks plain HTTP/2 to a TLS port; its URL should begin with https://");
  EXPECT_EQ(proxy.stop(), 0);
  const auto connection = only_connection();
  EXPECT_NE(connection.close.error().find("speaks plain HTTP/2"), std::string::npos);
  EXPECT_EQ(connection.bytes[0] + connection.bytes[1], "");
}

TEST_F(ProxyTls, AnIndexerThatSpeaksPlainHttpIsNamed) {
  ListeningSocket indexer;
  ProxyProcess proxy("https://" + indexer.address(), capture(), {"-k"});
  auto wallet = Socket::connect(proxy.address());
  wallet.send("GET / HTTP/1.1\r\n\r\n");
  auto peer = indexer.accept();
  peer.send("HTTP/1.1 400 Bad Request\r\n\r\n");
  std::string error;
  EXPECT_EQ(wallet.receive_all(&error), "");
  EXPECT_EQ(error, "ECONNRESET");
  EXPECT_EQ(proxy.stop(), 3);
  EXPECT_NE(only_connection().close.error().find("the server speaks plain HTTP/1.1, not TLS; its URL should begin with "
                                                 "http://"),
            std::string::npos);
}

TEST_F(ProxyTls, FailedHandshakesAreToldTwentyTimesAndRecordedAlways) {
  ListeningSocket indexer;
  ProxyProcess proxy("http://" + indexer.address(), capture(), kServe);
  for (int i = 0; i < 30; ++i) {
    auto scanner = Socket::connect(proxy.address());
    scanner.send("GET / HTTP/1.1\r\n\r\n");
    scanner.receive_all();
  }
  EXPECT_EQ(proxy.stop(), 0);
  EXPECT_EQ(read_traffic(capture()).connections.size(), 30U);
  const auto log = proxy.process().stderr_text();
  std::size_t lines = 0;
  for (auto at = log.find("plain HTTP/1.1"); at != std::string::npos; at = log.find("plain HTTP/1.1", at + 1)) ++lines;
  EXPECT_EQ(lines, 20U);
  EXPECT_NE(log.find("are recorded and counted, not told"), std::string::npos);
}

std::string served_serial(const std::string& address) {
  return run({"sh", "-c",
              "openssl s_client -connect " + address +
                  " -alpn h2 </dev/null 2>/dev/null | openssl x509 -noout -serial"})
      .out;
}

std::string serial_of(const std::string& file) {
  return run({"openssl", "x509", "-noout", "-serial", "-in", file}).out;
}

TEST_F(ProxyTls, SighupGivesNewConnectionsTheNewCertificateAndABadOneLeavesTheOld) {
  const auto certificate = path("live.pem"), key = path("live-key.pem");
  const auto install = [&](const Certificate& from) {
    std::filesystem::copy_file(from.certificate, certificate, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::copy_file(from.key, key, std::filesystem::copy_options::overwrite_existing);
  };
  const auto& files = Files::get();
  install(files.server);
  ListeningSocket indexer;
  ProxyProcess proxy("http://" + indexer.address(), capture(), {"--tls-cert", certificate, "--tls-key", key});
  EXPECT_EQ(served_serial(proxy.address()), serial_of(files.server.certificate));

  install(files.renewed);
  proxy.process().signal(SIGHUP);
  proxy.process().wait_for_stderr("new connections get the certificate as it is now");
  EXPECT_EQ(served_serial(proxy.address()), serial_of(files.renewed.certificate));

  std::ofstream(certificate) << "oops\n";
  proxy.process().signal(SIGHUP);
  proxy.process().wait_for_stderr("SIGHUP: --tls-cert: " + certificate +
                                  ": is not a PEM file; the certificate in use stays");
  EXPECT_EQ(served_serial(proxy.address()), serial_of(files.renewed.certificate));
  EXPECT_EQ(proxy.stop(), 0);
}

TEST_F(ProxyTls, TheProxyShowsItsClientCertificateToAnIndexerThatAsks) {
  random_file("question", 10, 1);
  random_file("answer", 10, 2);
  const auto& files = Files::get();
  {
    auto indexer = server("h2", "notify", files.server, files.ca.certificate);
    ProxyProcess proxy(url(*indexer), capture(),
                       with(with(kServe, kTrust), {"--cert", files.client.certificate, "--key", files.client.key}));
    auto wallet = client(proxy.address(), "h2", 10);
    EXPECT_EQ(wallet->line(), "TLSv1.3 h2 open");
    EXPECT_EQ(indexer->line(1), "client client");
    wallet->wait();
    EXPECT_EQ(proxy.stop(), 0);
  }
  // Without one: TLS 1.3 tells only after the handshake.
  auto indexer = server("h2", "notify", files.server, files.ca.certificate);
  ProxyProcess proxy(url(*indexer), capture(), with(with(kServe, kTrust), {"--force"}));
  auto wallet = client(proxy.address(), "h2", 10);
  wallet->wait();
  EXPECT_EQ(indexer->line(1), "no handshake: PEER_DID_NOT_RETURN_A_CERTIFICATE");
  indexer->wait();
  proxy.stop();
  EXPECT_EQ(only_connection().close.error(),
            "upstream: TLS: the server wants a client certificate (alert: certificate required)");
}

TEST_F(ProxyTls, SelfSignedIsTrustedByItsCaAndSaysHow) {
  const auto directory = path("made");
  ListeningSocket indexer;
  ProxyProcess proxy("http://" + indexer.address(), capture(), {"--tls-self-signed", directory});
  const auto verified =
      run({"sh", "-c",
           "openssl s_client -connect " + proxy.address() + " -verify_return_error -verify_ip 127.0.0.1 -CAfile " +
               directory + "/ca.pem </dev/null"});
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_EQ(proxy.stop(), 0);
  EXPECT_NE(proxy.process().stderr_text().find(directory + "/ca.pem"), std::string::npos);
  struct stat key{};
  ASSERT_EQ(stat((directory + "/server-key.pem").c_str(), &key), 0);
  EXPECT_EQ(key.st_mode & 0777, 0600U);
}

TEST_F(ProxyTls, TheKeyLogHoldsBothSidesSecretsAndIsWarnedOf) {
  random_file("question", 10, 1);
  random_file("answer", 10, 2);
  auto indexer = server("h2");
  ProxyProcess proxy(url(*indexer), capture(), with(with(kServe, kTrust), {"--tls-keylog", path("keys")}));
  auto wallet = client(proxy.address(), "h2", 10);
  wallet->wait();
  indexer->wait();
  EXPECT_EQ(proxy.stop(), 0);
  const auto keys = text_in(path("keys"));
  std::size_t secrets = 0;
  for (auto at = keys.find("CLIENT_TRAFFIC_SECRET_0"); at != std::string::npos;
       at = keys.find("CLIENT_TRAFFIC_SECRET_0", at + 1)) {
    ++secrets;
  }
  EXPECT_EQ(secrets, 2U);
  EXPECT_NE(proxy.process().stderr_text().find("can read this proxy's TLS traffic"), std::string::npos);
}

TEST_F(ProxyTls, OnlyTheRoutesThatAreNotHttpServeTls) {
  ListeningSocket first, second;
  ChildProcess proxy(with({ztape(), "proxy", "-w", capture(), "--route", "127.0.0.1:0=http://" + first.address(),
                           "--route", "http://127.0.0.1:0=http://" + second.address()},
                          kServe));
  const auto address_in = [&](std::size_t index) {
    const auto line = proxy.line(index);
    return line.substr(13, line.find(',') - 13);  // "listening on "
  };
  auto wallet = Socket::connect(address_in(1));
  wallet.send("plain");
  auto peer = second.accept();
  EXPECT_EQ(peer.receive(5), "plain");
  wallet.close();
  peer.receive_all();
  peer.close();
  EXPECT_NE(served_serial(address_in(0)), "");
  proxy.signal(SIGTERM);
  EXPECT_EQ(proxy.wait(), 0);
}

}  // namespace
}  // namespace ztape::test
