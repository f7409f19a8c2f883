#include "net/self_signed.h"

#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "net/address.h"
#include "net/tls_openssl.h"

namespace ztape::net {
namespace {

constexpr int kCaDays = 3650;
constexpr int kServerDays = 397;  // the most that every client's library takes
constexpr int kRenewalDays = 30;
constexpr long kSecondsPerDay = 24 * 60 * 60;

std::unexpected<Error> failed(ErrorCode code, const std::string& subject, const std::string& message) {
  return std::unexpected(Error{.code = code, .message = message, .subject = subject});
}

std::unexpected<Error> openssl_failed(const std::string& what) {
  return failed(ErrorCode::io, "OpenSSL", "could not make " + what + ": " + take_openssl_reason());
}

struct Identity {
  X509Pointer certificate;
  KeyPointer key;
};

bool exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

Result<void> write_file(const std::string& path, mode_t mode, BIO* from) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(from, &text);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) return failed(ErrorCode::io, path, std::strerror(errno));
  const bool written = fchmod(fd, mode) == 0 && ::write(fd, text, static_cast<std::size_t>(size)) == size;
  const int error = errno;
  if (close(fd) != 0 || !written) return failed(ErrorCode::io, path, std::strerror(error));
  return {};
}

Result<void> write_certificate(const std::string& path, X509* certificate) {
  const BioPointer text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(text.get(), certificate) != 1) return openssl_failed(path);
  return write_file(path, 0644, text.get());
}

Result<void> write_key(const std::string& path, EVP_PKEY* key) {
  const BioPointer text(BIO_new(BIO_s_secmem()));
  if (PEM_write_bio_PrivateKey(text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_failed(path);
  return write_file(path, 0600, text.get());
}

X509Pointer load_certificate(const std::string& path) {
  const BioPointer file(BIO_new_file(path.c_str(), "r"));
  X509Pointer certificate(file ? PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr) : nullptr);
  ERR_clear_error();
  return certificate;
}

KeyPointer load_key(const std::string& path) {
  const BioPointer file(BIO_new_file(path.c_str(), "r"));
  KeyPointer key(file ? PEM_read_bio_PrivateKey(file.get(), nullptr, nullptr, nullptr) : nullptr);
  ERR_clear_error();
  return key;
}

std::string alternative_names(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names)
    text += (text.empty() ? "" : ",") + std::string(is_ip_address(name) ? "IP:" : "DNS:") + name;
  return text;
}

// RFC 5280, section 4.2.1.10.
std::string constraints(const std::vector<std::string>& names) {
  std::string text =
      "critical,permitted;IP:127.0.0.0/255.0.0.0,permitted;IP:::1/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
  for (const auto& name : names) {
    if (!is_ip_address(name)) {
      text += ",permitted;DNS:" + name;
    } else if (name != "::1" && !name.starts_with("127.")) {
      const bool v6 = name.find(':') != std::string::npos;
      text += ",permitted;IP:" + name + (v6 ? "/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" : "/255.255.255.255");
    }
  }
  return text;
}

bool add_extension(X509* to, X509V3_CTX& context, int nid, const std::string& value) {
  const std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(to, extension.get(), -1) == 1;
}

// `by` is the CA; nullptr makes one.
Result<Identity> make_certificate(const std::string& common_name, const std::vector<std::string>& names,
                                  const Identity* by) {
  ERR_clear_error();
  Identity made{.certificate = X509Pointer(X509_new()), .key = KeyPointer(EVP_EC_gen("P-256"))};
  X509* certificate = made.certificate.get();
  if (!certificate || !made.key) return openssl_failed("a key");
  X509_set_version(certificate, X509_VERSION_3);
  const std::unique_ptr<BIGNUM, OpensslFree<BN_free>> serial(BN_new());
  BN_rand(serial.get(), 159, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY);
  BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate));
  // A client's clock may be behind.
  X509_gmtime_adj(X509_getm_notBefore(certificate), -kSecondsPerDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate), (by ? kServerDays : kCaDays) * kSecondsPerDay);
  X509_NAME* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  X509* issuer = by ? by->certificate.get() : certificate;
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  X509_set_pubkey(certificate, made.key.get());
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  bool added = add_extension(certificate, context, NID_subject_key_identifier, "hash");
  if (by) {
    added = added && add_extension(certificate, context, NID_authority_key_identifier, "keyid:always") &&
            add_extension(certificate, context, NID_basic_constraints, "critical,CA:FALSE") &&
            add_extension(certificate, context, NID_key_usage, "critical,digitalSignature") &&
            add_extension(certificate, context, NID_ext_key_usage, "serverAuth") &&
            add_extension(certificate, context, NID_subject_alt_name, alternative_names(names));
  } else {
    added = added && add_extension(certificate, context, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
            add_extension(certificate, context, NID_key_usage, "critical,keyCertSign,cRLSign") &&
            add_extension(certificate, context, NID_name_constraints, constraints(names));
  }
  EVP_PKEY* signing_key = by ? by->key.get() : made.key.get();
  if (!added || X509_sign(certificate, signing_key, EVP_sha256()) == 0) return openssl_failed("a certificate");
  return made;
}

bool expires_within(const X509* certificate, int days) {
  std::time_t then = std::time(nullptr) + days * kSecondsPerDay;
  return X509_cmp_time(X509_get0_notAfter(certificate), &then) < 0;
}

Result<Identity> ca_of(const std::string& ca_file, const std::string& key_file, const std::vector<std::string>& names) {
  if (exists(ca_file)) {
    Identity ca{.certificate = load_certificate(ca_file), .key = load_key(key_file)};
    if (!ca.certificate) return failed(ErrorCode::usage, ca_file, "is not a PEM certificate");
    if (!ca.key) {
      return failed(ErrorCode::usage, key_file, exists(key_file) ? "is not a PEM key" : std::strerror(ENOENT));
    }
    if (X509_check_private_key(ca.certificate.get(), ca.key.get()) != 1) {
      return failed(ErrorCode::usage, key_file, "does not belong to " + ca_file);
    }
    if (expires_within(ca.certificate.get(), kServerDays)) {
      return failed(ErrorCode::usage, ca_file, "will soon expire; name a new directory, and trust its CA");
    }
    return ca;
  }
  auto ca = make_certificate("ztape test CA on " + names.back(), names, nullptr);
  if (!ca) return ca;
  if (auto written = write_key(key_file, ca->key.get()); !written) return std::unexpected(written.error());
  if (auto written = write_certificate(ca_file, ca->certificate.get()); !written) {
    return std::unexpected(written.error());
  }
  return ca;
}

}  // namespace

std::vector<std::string> names_of_this_machine() {
  std::vector<std::string> names{"127.0.0.1", "::1", "localhost"};
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return names;
  const std::string name = host.data();
  const auto fits = [](unsigned char byte) { return std::isalnum(byte) || byte == '-' || byte == '.'; };
  // 64 is also the most that a common name may have.
  if (!name.empty() && name.size() <= 40 && name != "localhost" && std::ranges::all_of(name, fits))
    names.push_back(name);
  return names;
}

Result<SelfSigned> self_signed_certificate(const std::string& directory, const std::vector<std::string>& names) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return failed(ErrorCode::io, directory, std::strerror(errno));
  }
  SelfSigned all{.ca = directory + "/ca.pem",
                 .certificate = directory + "/server.pem",
                 .key = directory + "/server-key.pem",
                 .made = false,
                 .names = {},
                 .missing_names = {}};
  auto certificate = load_certificate(all.certificate);
  if (!certificate && exists(all.certificate)) {
    return failed(ErrorCode::usage, all.certificate, "is not a PEM certificate");
  }
  if (certificate && !exists(all.ca)) return failed(ErrorCode::usage, all.ca, std::strerror(ENOENT));
  if (!certificate || expires_within(certificate.get(), kRenewalDays)) {
    const auto ca = ca_of(all.ca, directory + "/ca-key.pem", names);
    if (!ca) return std::unexpected(ca.error());
    auto made = make_certificate(names.back(), names, &*ca);
    if (!made) return std::unexpected(made.error());
    if (auto written = write_key(all.key, made->key.get()); !written) return std::unexpected(written.error());
    if (auto written = write_certificate(all.certificate, made->certificate.get()); !written) {
      return std::unexpected(written.error());
    }
    certificate = std::move(made->certificate);
    all.made = true;
  }
  all.names = certificate_names(certificate.get());
  for (const auto& name : names) {
    const bool there = is_ip_address(name)
                           ? X509_check_ip_asc(certificate.get(), name.c_str(), 0) == 1
                           : X509_check_host(certificate.get(), name.c_str(), name.size(), 0, nullptr) == 1;
    if (!there) all.missing_names.push_back(name);
  }
  return all;
}

}  // namespace ztape::net
