#include "proxy/opening.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "http2/frame.h"

namespace ztape::proxy {
namespace {

// nullopt: more bytes are needed to know.
std::optional<bool> speaks_http2(std::string_view first) {
  const std::size_t size = std::min(first.size(), http2::kClientPreface.size());
  if (first.substr(0, size) != http2::kClientPreface.substr(0, size)) return false;
  if (size < http2::kClientPreface.size()) return std::nullopt;
  return true;
}

}  // namespace

// Reads a plaintext wallet until it is known what it speaks.
struct Opening::FirstBytes final : net::Connection::Handler {
  explicit FirstBytes(Opening& opening) : owner(opening) {}

  void on_read(net::Slice bytes, MonotonicTime time) override {
    auto& all = owner.outcome_.early_bytes;
    if (all.empty()) {
      all = std::move(bytes);
    } else {  // somebody sends a preface in pieces
      std::string joined(reinterpret_cast<const char*>(all.data()), all.size());
      joined.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      all = net::Slice::copy_of(joined);
    }
    owner.outcome_.early_time = time;
    owner.on_first_bytes();
  }
  void on_eof(MonotonicTime time) override {
    owner.outcome_.early_eof = time;
    owner.on_first_bytes();
  }
  void on_error(const std::string& system_error, MonotonicTime) override { owner.fail(Side::downstream, system_error); }

  Opening& owner;
};

Opening::Opening(net::Loop& loop, const ProxyOptions& options, std::shared_ptr<const Destination> destination,
                 std::unique_ptr<net::TcpConnection> downstream, bool downstream_tls, Sockets& sockets, OnDone on_done)
    : loop_(loop),
      options_(options),
      destination_(std::move(destination)),
      sockets_(sockets),
      on_done_(std::move(on_done)) {
  if (downstream_tls) {
    accept_tls(std::move(downstream));
  } else {
    ready_[index(Side::downstream)] = true;
    sockets_[index(Side::downstream)] = std::move(downstream);
    if (destination_->url.tls) {
      // No connection yet: a wallet that says nothing for long would find it timed out.
      first_bytes_ = std::make_unique<FirstBytes>(*this);
      sockets_[index(Side::downstream)]->set_handler(first_bytes_.get());
      sockets_[index(Side::downstream)]->start_reading();
      return;
    }
  }
  connect();
}

Opening::~Opening() = default;

void Opening::accept_tls(std::unique_ptr<net::TcpConnection> downstream) {
  const bool wait = destination_->url.tls;
  auto wallet = net::TlsConnection::accept(
      std::move(downstream), options_.tls->downstream, {.alpn = {"h2", "http/1.1"}, .wait_for_answer = wait},
      [this](const Result<void>& result) { on_downstream(result); },
      [this](const net::TlsClientHello& hello) { offer(hello.alpn, hello.server_name); });
  if (wait) waiting_wallet_ = wallet.get();
  sockets_[index(Side::downstream)] = std::move(wallet);
}

void Opening::on_downstream(const Result<void>& result) {
  if (!result) return fail(Side::downstream, result.error().line());
  ready_[index(Side::downstream)] = true;
  finish_if_ready();
}

void Opening::on_first_bytes() {
  const auto& bytes = outcome_.early_bytes;
  const auto http2 = speaks_http2({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!http2 && !outcome_.early_eof) return;
  sockets_[index(Side::downstream)]->pause_reading();
  offer({http2.value_or(true) ? "h2" : "http/1.1"}, "");
  if (!connector_) connect();
}

void Opening::connect() {
  connector_ = std::make_unique<net::Connector>(loop_, destination_->addresses, options_.upstream_options,
                                                options_.connect_timeout_ns,
                                                [this](auto result) { on_connected(std::move(result)); });
}

void Opening::on_connected(Result<std::unique_ptr<net::TcpConnection>> result) {
  if (!result) {
    outcome_.upstream_peer = result.error().subject;
    return fail(Side::upstream, result.error().line());
  }
  outcome_.upstream_peer = (*result)->peer_text();
  if (destination_->url.tls) {
    upstream_socket_ = std::move(*result);
    return connect_tls();
  }
  sockets_[index(Side::upstream)] = std::move(*result);
  ready_[index(Side::upstream)] = true;
  finish_if_ready();
}

std::string Opening::upstream_local() const {
  if (upstream_socket_) return upstream_socket_->local_text();
  return connector_ ? connector_->local_text() : "";
}

void Opening::offer(std::vector<std::string> alpn, const std::string& wallets_server_name) {
  if (upstream_handshake_) return;
  // A destination without a name of its own: whom the wallet wants to reach.
  const auto& name = destination_->server_name;
  upstream_handshake_ = net::TlsClientHandshake{.server_name = !name.empty()                 ? name
                                                               : wallets_server_name.empty() ? destination_->url.host
                                                                                             : wallets_server_name,
                                                .alpn = std::move(alpn)};
  connect_tls();
}

void Opening::connect_tls() {
  if (!upstream_socket_ || !upstream_handshake_) return;
  sockets_[index(Side::upstream)] =
      net::TlsConnection::connect(std::move(upstream_socket_), options_.tls->upstream, *upstream_handshake_,
                                  [this](const Result<void>& result) { on_upstream(result); });
}

void Opening::on_upstream(const Result<void>& result) {
  if (!result) return fail(Side::upstream, result.error().line());
  ready_[index(Side::upstream)] = true;
  if (auto* wallet = std::exchange(waiting_wallet_, nullptr)) {
    wallet->answer(sockets_[index(Side::upstream)]->tls()->alpn);
  }
  finish_if_ready();
}

void Opening::finish_if_ready() {
  if (!ready_[0] || !ready_[1]) return;
  const auto moved = std::exchange(on_done_, nullptr);
  if (moved) moved(std::move(outcome_));
}

void Opening::fail(Side side, std::string error) {
  outcome_.failed = side;
  outcome_.error = std::move(error);
  const auto moved = std::exchange(on_done_, nullptr);
  if (moved) moved(std::move(outcome_));
}

}  // namespace ztape::proxy
