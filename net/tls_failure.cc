#include "net/tls_failure.h"

#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "net/tls_openssl.h"

namespace ztape::net {
namespace {

constexpr std::size_t kMostNames = 6;
constexpr int kCertificateRequired = 116;  // RFC 8446, section 6

std::string joined(const std::vector<std::string>& names, const std::string& none) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostNames; ++i) text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kMostNames) text += ", ...";
  return text.empty() ? none : text;
}

// What the peer speaks where it does not speak TLS; "" where that is not seen.
std::string plaintext_protocol(std::string_view first) {
  if (first.starts_with("PRI * HTTP/2")) return "HTTP/2";
  if (first.starts_with("HTTP/1.")) return "HTTP/1.1";
  for (const std::string_view method : {"GET ", "POST ", "HEAD ", "PUT ", "OPTIONS ", "CONNECT ", "DELETE "}) {
    if (first.starts_with(method)) return "HTTP/1.1";
  }
  // The type and the stream 0 of HTTP/2's first frame, SETTINGS (RFC 9113, section 3.4).
  if (first.size() >= 9 && first[0] == 0 && first[3] == 4 && first.substr(5, 4) == std::string_view("\0\0\0\0", 4)) {
    return "HTTP/2";
  }
  return "";
}

std::string alert_text(int alert, bool server) {
  std::string name = SSL_alert_desc_string_long(alert);
  if (alert == kCertificateRequired) name = "certificate required";  // which OpenSSL 3.0 has no words for
  if (name == "unknown") name = std::to_string(alert);
  const std::string peer = server ? "the wallet" : "the server";
  const std::string quoted = " (alert: " + name + ")";
  switch (alert) {
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_REVOKED: return peer + " does not accept this side's certificate" + quoted;
    case kCertificateRequired: return peer + " wants a client certificate" + quoted;
    case SSL_AD_PROTOCOL_VERSION: return peer + " speaks none of TLS 1.2 and 1.3" + quoted;
    case SSL_AD_NO_APPLICATION_PROTOCOL: return peer + " speaks none of the protocols that were offered" + quoted;
    case SSL_AD_UNRECOGNIZED_NAME: return peer + " does not know the name it was asked for" + quoted;
    default: return peer + " ended the connection" + quoted;
  }
}

}  // namespace

std::string verification_text(const SSL* ssl, const std::string& server_name,
                              const std::vector<std::string>& peer_names) {
  const long result = SSL_get_verify_result(ssl);
  if (result == X509_V_OK) return "ok";
  if (result == X509_V_ERR_HOSTNAME_MISMATCH || result == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    return "the certificate is for " + joined(peer_names, "nobody") + ", not for " + server_name;
  }
  std::string text = X509_verify_cert_error_string(result);
  if (result == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY) text = "signed by a CA that is not trusted here";
  return text;
}

std::string failure_text(const TlsFailure& failure) {
  const unsigned long code = ERR_peek_error();
  const int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
  const auto words = take_openssl_reason();
  if (failure.handshake) {
    if (const auto spoken = plaintext_protocol(failure.first_bytes); !spoken.empty()) {
      return failure.server ? "the wallet speaks plain " + spoken + " to a TLS port; its URL should begin with https://"
                            : "the server speaks plain " + spoken + ", not TLS; its URL should begin with http://";
    }
  }
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    return "the certificate does not verify: " +
           verification_text(failure.ssl, failure.server_name, failure.peer_names);
  }
  if (reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256) {
    auto text = alert_text(reason - SSL_AD_REASON_OFFSET, failure.server);
    if (reason - SSL_AD_REASON_OFFSET == SSL_AD_NO_APPLICATION_PROTOCOL)
      text += ": " + joined(failure.our_alpn, "none");
    return text;
  }
  switch (reason) {
    case SSL_R_NO_APPLICATION_PROTOCOL:
      return "the wallet offers ALPN " + joined(failure.their_alpn, "none") + "; this end speaks " +
             joined(failure.our_alpn, "none");
    case SSL_R_UNSUPPORTED_PROTOCOL: return "the peer speaks none of TLS 1.2 and 1.3";
    case SSL_R_NO_SHARED_CIPHER: return "no cipher in common with the peer";
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_BAD_RECORD_TYPE:
      if (failure.handshake) return "what the peer sent is not TLS (" + words + ")";
      break;
    default: break;
  }
  return words.empty() ? "OpenSSL error " + std::to_string(failure.ssl_error) : words;
}

}  // namespace ztape::net
