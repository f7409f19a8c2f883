#include "net/tls_context.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <utility>

#include "net/tls_openssl.h"

namespace ztape::net {
namespace {

std::unexpected<Error> file_error(const std::string& file, const std::string& message) {
  return std::unexpected(Error{.code = ErrorCode::usage, .message = message, .subject = file});
}

Result<std::string> read_whole(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return file_error(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) return file_error(path, "is a directory, not a PEM file");
  if (S_ISREG(status.st_mode) && status.st_size == 0) return file_error(path, "is empty");
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return file_error(path, std::strerror(errno));
  return text.str();
}

// Why a file with such bytes holds no certificate, or no key.
std::string not_pem(const std::string& text, const std::string& wanted) {
  if (text.find("-----BEGIN") != std::string::npos) {
    const bool has_key = text.find("PRIVATE KEY-----") != std::string::npos;
    const bool has_certificate = text.find("CERTIFICATE-----") != std::string::npos;
    if (wanted == "certificate" && has_key && !has_certificate) return "holds a private key, not a certificate";
    if (wanted == "private key" && has_certificate && !has_key) return "holds a certificate, not a private key";
    return "holds no " + wanted + " that can be read";
  }
  if (!text.empty() && text.front() == 0x30) {  // a DER SEQUENCE
    return "is DER, not PEM; openssl " + std::string(wanted == "certificate" ? "x509" : "pkey") +
           " -inform der -in FILE -out FILE.pem makes PEM of it";
  }
  return "is not a PEM file";
}

BioPointer reader_of(const std::string& text) {
  return BioPointer(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// No terminal is asked for a passphrase.
int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

Result<std::vector<X509Pointer>> read_certificates(const std::string& path) {
  const auto text = read_whole(path);
  if (!text) return std::unexpected(text.error());
  const auto reader = reader_of(*text);
  std::vector<X509Pointer> all;
  bool asked = false;
  while (X509* one = PEM_read_bio_X509_AUX(reader.get(), nullptr, no_passphrase, &asked)) all.emplace_back(one);
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const auto reason = take_openssl_reason();
  if (all.empty() && at_end) return file_error(path, not_pem(*text, "certificate"));
  if (!at_end) return file_error(path, "certificate " + std::to_string(all.size() + 1) + " in it is broken: " + reason);
  return all;
}

Result<KeyPointer> read_key(const std::string& path) {
  const auto text = read_whole(path);
  if (!text) return std::unexpected(text.error());
  const auto reader = reader_of(*text);
  bool asked = false;
  KeyPointer key(PEM_read_bio_PrivateKey(reader.get(), nullptr, no_passphrase, &asked));
  take_openssl_reason();
  if (asked) return file_error(path, "the key is encrypted; openssl pkey -in FILE -out PLAIN takes the passphrase off");
  if (!key) return file_error(path, not_pem(*text, "private key"));
  return key;
}

int key_log_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

Result<std::unique_ptr<TlsContext::Impl>> make(const SSL_METHOD* method, std::shared_ptr<TlsKeyLog> key_log) {
  ERR_clear_error();
  auto impl = std::make_unique<TlsContext::Impl>();
  impl->ssl.reset(SSL_CTX_new(method));
  SSL_CTX* ssl = impl->ssl.get();
  if (!ssl || SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) != 1) {
    return std::unexpected(Error{.code = ErrorCode::io, .message = "OpenSSL: " + take_openssl_reason(), .subject = ""});
  }
  SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // An idle connection costs no record buffers. Resumption is by tickets, which cost this side nothing.
  SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
  if (key_log) {
    SSL_CTX_set_ex_data(ssl, key_log_index(), key_log.get());
    SSL_CTX_set_keylog_callback(ssl, [](const SSL* of, const char* line) {
      static_cast<TlsKeyLog*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(of), key_log_index()))->line(line);
    });
    impl->key_log = std::move(key_log);
  }
  return impl;
}

Result<void> use_certificate(SSL_CTX* ssl, const std::string& certificate_file, const std::string& key_file) {
  auto certificates = read_certificates(certificate_file);
  if (!certificates) return std::unexpected(certificates.error());
  const auto key = read_key(key_file);
  if (!key) return std::unexpected(key.error());
  if (X509_check_private_key(certificates->front().get(), key->get()) != 1) {
    take_openssl_reason();
    return file_error(key_file, "the key does not belong to the (first) certificate in " + certificate_file);
  }
  if (SSL_CTX_use_certificate(ssl, certificates->front().get()) != 1) {
    return file_error(certificate_file, "OpenSSL refuses the certificate: " + take_openssl_reason());
  }
  if (SSL_CTX_use_PrivateKey(ssl, key->get()) != 1) {
    return file_error(key_file, "OpenSSL refuses the key: " + take_openssl_reason());
  }
  for (std::size_t i = 1; i < certificates->size(); ++i) {
    if (SSL_CTX_add1_chain_cert(ssl, (*certificates)[i].get()) == 1) continue;
    return file_error(certificate_file, "OpenSSL refuses certificate " + std::to_string(i + 1) +
                                            " of the chain: " + take_openssl_reason());
  }
  return {};
}

Result<void> trust(SSL_CTX* ssl, const std::string& ca_file) {
  if (ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(ssl);  // none there: then no certificate verifies, which says so itself
    ERR_clear_error();
    return {};
  }
  const auto certificates = read_certificates(ca_file);
  if (!certificates) return std::unexpected(certificates.error());
  X509_STORE* store = SSL_CTX_get_cert_store(ssl);
  for (const auto& certificate : *certificates) X509_STORE_add_cert(store, certificate.get());
  // Whoever names a server's own certificate, or an intermediate CA, means it.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ssl), X509_V_FLAG_PARTIAL_CHAIN);
  ERR_clear_error();
  return {};
}

}  // namespace

std::string take_openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "";
  if (const char* reason = ERR_reason_error_string(code)) return reason;
  return "error " + std::to_string(code);
}

std::vector<std::string> certificate_names(const X509* certificate) {
  std::vector<std::string> names;
  const std::unique_ptr<GENERAL_NAMES, OpensslFree<GENERAL_NAMES_free>> all(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
    const ASN1_STRING* text = name->type == GEN_DNS     ? name->d.dNSName
                              : name->type == GEN_IPADD ? name->d.iPAddress
                                                        : nullptr;
    if (!text) continue;
    const auto* bytes = ASN1_STRING_get0_data(text);
    const auto size = static_cast<std::size_t>(ASN1_STRING_length(text));
    if (name->type == GEN_DNS) {
      names.emplace_back(reinterpret_cast<const char*>(bytes), size);
    } else if (size == 4 || size == 16) {
      std::array<char, INET6_ADDRSTRLEN> printed{};
      if (inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, printed.data(), printed.size()))
        names.emplace_back(printed.data());
    }
  }
  if (names.empty()) {
    std::array<char, 256> common{};
    const int size =
        X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, common.data(), common.size());
    if (size > 0) names.emplace_back(common.data());
  }
  return names;
}

std::string day_of(const ASN1_TIME* time) {
  std::tm utc{};
  if (ASN1_TIME_to_tm(time, &utc) != 1) return "?";
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &utc);
  return text.data();
}

TlsContext::TlsContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<TlsContext>> TlsContext::for_server(const TlsServerFiles& files,
                                                           std::shared_ptr<TlsKeyLog> key_log) {
  auto impl = make(TLS_server_method(), std::move(key_log));
  if (!impl) return std::unexpected(impl.error());
  if (auto used = use_certificate((*impl)->ssl.get(), files.certificate, files.key); !used) {
    return std::unexpected(used.error());
  }
  return std::make_shared<TlsContext>(std::move(*impl));
}

Result<std::shared_ptr<TlsContext>> TlsContext::for_client(const TlsClientFiles& files,
                                                           std::shared_ptr<TlsKeyLog> key_log) {
  auto impl = make(TLS_client_method(), std::move(key_log));
  if (!impl) return std::unexpected(impl.error());
  SSL_CTX* ssl = (*impl)->ssl.get();
  if (auto trusted = trust(ssl, files.ca); !trusted) return std::unexpected(trusted.error());
  if (!files.certificate.empty()) {
    if (auto used = use_certificate(ssl, files.certificate, files.key); !used) return std::unexpected(used.error());
  }
  SSL_CTX_set_verify(ssl, files.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  (*impl)->insecure = files.insecure;
  return std::make_shared<TlsContext>(std::move(*impl));
}

std::string TlsContext::summary() const {
  const X509* certificate = SSL_CTX_get0_certificate(impl_->ssl.get());
  if (!certificate) return "";
  std::string text;
  for (const auto& name : certificate_names(certificate)) text += name + ", ";
  return text + "valid until " + day_of(X509_get0_notAfter(certificate));
}

std::string TlsContext::warning() const {
  const X509* certificate = SSL_CTX_get0_certificate(impl_->ssl.get());
  if (!certificate) return "";
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    return "the certificate expired on " + day_of(X509_get0_notAfter(certificate)) + ": wallets will refuse it";
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    return "the certificate is not valid before " + day_of(X509_get0_notBefore(certificate)) +
           ": wallets will refuse it";
  }
  return "";
}

Result<std::shared_ptr<TlsKeyLog>> TlsKeyLog::open(const std::string& path) {
  const auto failed = [&](const std::string& why) {
    return std::unexpected(Error{.code = ErrorCode::io, .message = why, .subject = path});
  };
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return failed(std::strerror(errno));
  std::shared_ptr<TlsKeyLog> log(new TlsKeyLog(fd));
  struct stat status{};
  if (fstat(fd, &status) != 0) return failed(std::strerror(errno));
  if (S_ISREG(status.st_mode) && (status.st_mode & 077) != 0) {
    return failed("others may read it; chmod 600 it first, or name a new file");
  }
  return log;
}

TlsKeyLog::~TlsKeyLog() {
  ::close(fd_);
}

void TlsKeyLog::line(const char* text) {
  // One write, so that lines of several processes do not mix.
  std::array<iovec, 2> parts{{{const_cast<char*>(text), std::strlen(text)}, {const_cast<char*>("\n"), 1}}};
  [[maybe_unused]] const auto written = writev(fd_, parts.data(), parts.size());
}

}  // namespace ztape::net
