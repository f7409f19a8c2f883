// Brings both ends of one pair up before anything is relayed: TCP to the indexer, TLS where a side has it, and the same
// application protocol on both sides. Lives on the loop's thread.
//
// TLS on both sides: the wallet's ALPN list goes to the indexer, and the wallet's handshake waits for the choice. TLS
// towards the indexer only: the wallet's first bytes say what it speaks, and that is asked for. TLS towards the wallet
// only: h2 is agreed to before http/1.1, as a gRPC server does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/connection.h"
#include "net/loop.h"
#include "net/tcp.h"
#include "net/tls_connection.h"
#include "proxy/proxy_options.h"
#include "proxy/relay.h"
#include "proxy/route.h"

namespace ztape::proxy {

class Opening {
 public:
  using Sockets = std::unique_ptr<net::Connection>[2];

  struct Outcome {
    std::optional<Side> failed;  // none: both sockets are ready
    std::string error;           // "127.0.0.1:9067: connection refused"
    std::string upstream_peer;   // that was tried or reached; "" for none
    // What a plaintext wallet sent before the indexer's handshake could begin; it is to be relayed first.
    net::Slice early_bytes;
    MonotonicTime early_time;
    std::optional<MonotonicTime> early_eof;
  };
  // Once, on the loop, never from inside the constructor; may destroy the Opening.
  using OnDone = std::function<void(Outcome)>;

  // Fills `sockets`, which must outlive it; a side is there from the moment it is connected.
  Opening(net::Loop& loop, const ProxyOptions& options, std::shared_ptr<const Destination> destination,
          std::unique_ptr<net::TcpConnection> downstream, bool downstream_tls, Sockets& sockets, OnDone on_done);
  ~Opening();
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  // Whether it will still open one.
  [[nodiscard]] bool owes_upstream_socket() const { return !connector_; }
  // Of the socket towards the indexer while it is not in `sockets` yet; "" where there is none.
  [[nodiscard]] std::string upstream_local() const;

 private:
  struct FirstBytes;

  void accept_tls(std::unique_ptr<net::TcpConnection> downstream);
  void on_downstream(const Result<void>& result);
  void on_first_bytes();
  void connect();
  void on_connected(Result<std::unique_ptr<net::TcpConnection>> result);
  void offer(std::vector<std::string> alpn, const std::string& wallets_server_name);
  void connect_tls();
  void on_upstream(const Result<void>& result);
  void finish_if_ready();
  void fail(Side side, std::string error);

  net::Loop& loop_;
  const ProxyOptions& options_;
  const std::shared_ptr<const Destination> destination_;
  Sockets& sockets_;
  OnDone on_done_;
  Outcome outcome_;
  std::unique_ptr<net::Connector> connector_;
  std::unique_ptr<net::TcpConnection> upstream_socket_;  // waits for what it is to offer
  std::optional<net::TlsClientHandshake> upstream_handshake_;
  std::unique_ptr<FirstBytes> first_bytes_;
  net::TlsConnection* waiting_wallet_ = nullptr;  // in sockets_, while its handshake waits for the indexer's choice
  bool ready_[2] = {false, false};
};

}  // namespace ztape::proxy
