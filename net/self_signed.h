// A CA of one's own and a certificate by it, for trying TLS out where no real certificate is to be had.
#pragma once

#include <string>
#include <vector>

#include "proto/error.h"

namespace ztape::net {

struct SelfSigned {
  std::string ca;           // the file to be trusted, PEM
  std::string certificate;  // of the server
  std::string key;
  bool made = false;                       // now; otherwise it was there
  std::vector<std::string> names;          // the certificate's
  std::vector<std::string> missing_names;  // wanted, and not the certificate's
};

// localhost, the loopback addresses, and this machine's name.
std::vector<std::string> names_of_this_machine();

// Makes `directory` (0700) and in it ca.pem, ca-key.pem, server.pem and server-key.pem (keys 0600), P-256. What is
// there is used as it is; a server.pem that is missing, or has less than 30 days to go, is made anew by the CA. The CA
// may vouch only for `names` and loopback: who gets hold of ca-key.pem can play no other server. Blocking. Errors:
// usage (the file and what is wrong with it), io.
Result<SelfSigned> self_signed_certificate(const std::string& directory, const std::vector<std::string>& names);

}  // namespace ztape::net
