// Certificates for one test, made by the openssl program: our own code does not judge itself.
#pragma once

#include <string>
#include <vector>

namespace ztape::test {

struct Certificate {
  std::string certificate;  // PEM files
  std::string key;
};

// Each makes `<directory>/<name>.pem` and `<directory>/<name>-key.pem`, P-256, and throws std::runtime_error.
Certificate make_ca(const std::string& directory, const std::string& name);
// `alternative_names` as openssl has them: "DNS:localhost,IP:127.0.0.1". `days` may be negative: it has expired.
Certificate make_certificate(const std::string& directory, const std::string& name, const Certificate& ca,
                             const std::string& alternative_names = "DNS:localhost,IP:127.0.0.1", int days = 30);

}  // namespace ztape::test
