#include "net/tls_context.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "net/self_signed.h"
#include "net/tls_engine.h"
#include "tests/net/tls_fixtures.h"
#include "tests/support/child_process.h"

namespace ztape::net {
namespace {

std::string error_of(const std::string& certificate, const std::string& key) {
  const auto context = TlsContext::for_server({.certificate = certificate, .key = key});
  return context ? "" : context.error().line();
}

std::string write(const test::TemporaryDirectory& directory, const std::string& name, const std::string& text) {
  const auto path = directory.file(name);
  std::ofstream(path) << text;
  return path;
}

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

mode_t mode_of(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777;
}

TEST(TlsContext, EveryErrorNamesTheFileAndWhatIsWrongWithIt) {
  const auto& files = TlsFiles::get();
  const test::TemporaryDirectory directory;
  const auto& [certificate, key] = files.server;
  EXPECT_EQ(error_of(certificate, key), "");
  EXPECT_EQ(error_of("/nowhere/cert.pem", key), "/nowhere/cert.pem: No such file or directory");
  EXPECT_EQ(error_of(certificate, "/nowhere/key.pem"), "/nowhere/key.pem: No such file or directory");
  EXPECT_EQ(error_of(directory.path(), key), directory.path() + ": is a directory, not a PEM file");
  const auto empty = write(directory, "empty", "");
  EXPECT_EQ(error_of(empty, key), empty + ": is empty");
  const auto text = write(directory, "text", "hello\n");
  EXPECT_EQ(error_of(text, key), text + ": is not a PEM file");
  EXPECT_EQ(error_of(certificate, text), text + ": is not a PEM file");
  EXPECT_EQ(error_of(key, certificate), key + ": holds a private key, not a certificate");
  EXPECT_EQ(error_of(certificate, certificate), certificate + ": holds a certificate, not a private key");
  EXPECT_EQ(error_of(certificate, files.ca.key),
            files.ca.key + ": the key does not belong to the (first) certificate in " + certificate);
  const auto broken = write(directory, "broken", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  EXPECT_TRUE(error_of(broken, key).starts_with(broken + ": certificate 1 in it is broken: ")) << error_of(broken, key);
  const auto der = directory.file("der");
  ASSERT_EQ(test::run({"openssl", "x509", "-in", certificate, "-outform", "der", "-out", der}).status, 0);
  EXPECT_EQ(error_of(der, key),
            der + ": is DER, not PEM; openssl x509 -inform der -in FILE -out FILE.pem makes PEM of it");
  const auto encrypted = directory.file("encrypted");
  ASSERT_EQ(test::run({"openssl", "pkey", "-in", key, "-aes128", "-passout", "pass:x", "-out", encrypted}).status, 0);
  EXPECT_EQ(error_of(certificate, encrypted),
            encrypted + ": the key is encrypted; openssl pkey -in FILE -out PLAIN takes the passphrase off");
}

TEST(TlsContext, ACertificateIsSummedUpForTheLog) {
  EXPECT_TRUE(server_context()->summary().starts_with("localhost, 127.0.0.1, valid until 20"))
      << server_context()->summary();
  EXPECT_EQ(server_context()->warning(), "");
  EXPECT_EQ(client_context()->summary(), "");
}

TEST(TlsContext, TheKeyLogIsTheOwnersOnlyAndHoldsTheSecretsOfAConnection) {
  const test::TemporaryDirectory directory;
  const auto path = directory.file("keys");
  {
    auto log = TlsKeyLog::open(path);
    ASSERT_TRUE(log) << log.error().line();
    const auto& files = TlsFiles::get();
    auto context = TlsContext::for_server({.certificate = files.server.certificate, .key = files.server.key}, *log);
    ASSERT_TRUE(context);
    TlsEngine server(*context, TlsServerHandshake{.alpn = {"h2"}});
    TlsEngine client(client_context(), TlsClientHandshake{.server_name = "localhost", .alpn = {"h2"}});
    client.step();
    for (auto& slice : client.take_output()) server.feed(slice);
    server.step();
    for (auto& slice : server.take_output()) client.feed(slice);
    client.step();
    for (auto& slice : client.take_output()) server.feed(slice);
    ASSERT_EQ(server.step(), TlsEngine::Step::done);
  }
  EXPECT_EQ(mode_of(path), 0600U);
  std::ifstream file(path);
  std::string label, random, secret;
  std::vector<std::string> labels;
  while (file >> label >> random >> secret) {
    labels.push_back(label);
    EXPECT_EQ(random.size(), 64U);
  }
  EXPECT_NE(std::ranges::find(labels, "SERVER_TRAFFIC_SECRET_0"), labels.end());
  EXPECT_NE(std::ranges::find(labels, "CLIENT_TRAFFIC_SECRET_0"), labels.end());
}

TEST(TlsContext, AKeyLogThatOthersMayReadIsRefused) {
  const test::TemporaryDirectory directory;
  const auto path = write(directory, "keys", "");
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  const auto log = TlsKeyLog::open(path);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().line(), path + ": others may read it; chmod 600 it first, or name a new file");
}

TEST(SelfSigned, OpensslVerifiesTheCertificateForEveryNameAndTheKeysAreTheOwnersOnly) {
  const test::TemporaryDirectory parent;
  const auto directory = parent.file("tls");
  const std::vector<std::string> names{"127.0.0.1", "::1", "localhost", "192.168.7.9", "box.lan"};
  const auto made = self_signed_certificate(directory, names);
  ASSERT_TRUE(made) << made.error().line();
  EXPECT_TRUE(made->made);
  EXPECT_EQ(made->names, names);
  EXPECT_TRUE(made->missing_names.empty());
  EXPECT_EQ(mode_of(directory), 0700U);
  EXPECT_EQ(mode_of(made->key), 0600U);
  EXPECT_EQ(mode_of(directory + "/ca-key.pem"), 0600U);
  for (const auto& name : names) {
    const bool ip = name.find(':') != std::string::npos || std::isdigit(static_cast<unsigned char>(name[0]));
    const auto verified = test::run({"openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", made->ca,
                                     ip ? "-verify_ip" : "-verify_hostname", name, made->certificate});
    EXPECT_EQ(verified.status, 0) << name << ": " << verified.out << verified.err;
  }
}

TEST(SelfSigned, TheCaCannotVouchForOtherNames) {
  const test::TemporaryDirectory directory;
  const auto made = self_signed_certificate(directory.path(), names_of_this_machine());
  ASSERT_TRUE(made) << made.error().line();
  const test::Certificate ca{made->ca, directory.file("ca-key.pem")};
  for (const std::string name : {"DNS:zec.rocks", "IP:8.8.8.8"}) {
    const auto forged = test::make_certificate(directory.path(), "forged", ca, name);
    const auto verified = test::run({"openssl", "verify", "-CAfile", made->ca, forged.certificate});
    EXPECT_NE(verified.status, 0) << name;
    EXPECT_NE(verified.err.find("permitted subtree violation"), std::string::npos) << verified.err;
  }
}

TEST(SelfSigned, WhatIsThereIsUsedAgainAndAMissingCertificateIsMadeByTheSameCa) {
  const test::TemporaryDirectory directory;
  const auto first = self_signed_certificate(directory.path(), {"localhost"});
  ASSERT_TRUE(first) << first.error().line();
  const auto ca = text_in(first->ca), certificate = text_in(first->certificate);
  const auto second = self_signed_certificate(directory.path(), {"localhost", "box.lan"});
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->made);
  EXPECT_EQ(second->missing_names, std::vector<std::string>{"box.lan"});
  EXPECT_EQ(text_in(second->certificate), certificate);
  std::filesystem::remove(first->certificate);
  const auto third = self_signed_certificate(directory.path(), {"localhost"});
  ASSERT_TRUE(third);
  EXPECT_TRUE(third->made);
  EXPECT_EQ(text_in(third->ca), ca);
  EXPECT_NE(text_in(third->certificate), certificate);
  EXPECT_EQ(test::run({"openssl", "verify", "-CAfile", third->ca, third->certificate}).status, 0);
}

TEST(SelfSigned, ADirectoryThatCannotBeMadeIsNamed) {
  const auto made = self_signed_certificate("/nowhere/tls", {"localhost"});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().line(), "/nowhere/tls: No such file or directory");
}

}  // namespace
}  // namespace ztape::net
