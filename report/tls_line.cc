#include "report/tls_line.h"

#include <map>

#include "report/text.h"

namespace ztape::report {
namespace {

constexpr std::size_t kMostKinds = 6;

std::string kind(const capture::TlsState& tls, bool of_wallet) {
  std::string text = (of_wallet ? "wallets by " : "indexer by ") + escaped(tls.version(), 20);
  if (!tls.alpn().empty()) text += ", " + escaped(tls.alpn(), 40);
  if (!tls.server_name().empty()) text += ", for " + escaped(tls.server_name(), 60);
  if (!of_wallet) {
    text += ", certificate " +
            (tls.verification() == "ok" ? "verified" : "not verified: " + escaped(tls.verification(), 120));
  }
  return text;
}

}  // namespace

std::string tls_lines(const http2::RecordedCapture& capture) {
  std::map<std::string, std::size_t> kinds;
  for (const auto& connection : capture.connections) {
    if (connection.open.has_downstream_tls()) ++kinds[kind(connection.open.downstream_tls(), true)];
    if (connection.open.has_upstream_tls()) ++kinds[kind(connection.open.upstream_tls(), false)];
  }
  std::string text;
  std::size_t shown = 0;
  for (const auto& [words, number] : kinds) {
    if (shown++ == kMostKinds) return text + "TLS: ... and other kinds (--json lists them all)\n";
    text += "TLS: " + words + " (" + counted(number, "connection") + ")\n";
  }
  return text;
}

}  // namespace ztape::report
