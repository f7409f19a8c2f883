#include "replay/serve_server.h"

#include <utility>

namespace ztape::replay {

// One accepted connection. Ends by asking the server to remove it, after which nothing of it may be touched.
class ServeServer::Peer final : public net::TcpConnection::Handler {
 public:
  Peer(ServeServer& server, std::unique_ptr<net::TcpConnection> connection)
      : server_(server),
        session_(server.book_, server.options_, server.counts_, server.log_),
        timer_(server.loop_),
        connection_(std::move(connection)) {
    connection_->set_handler(this);
  }

  void start() {
    connection_->start_reading();
    send();
  }

  // A last word, as far as the kernel takes it at once.
  void say_goodbye() {
    session_.shut_down();
    send_writes();
  }

 private:
  void on_read(net::Slice bytes, MonotonicTime time) override {
    session_.receive(bytes.span(), time);
    send();
  }

  void on_eof(MonotonicTime /*time*/) override {
    // The client's side is over; it may still want the answers that are due to it.
    read_ended_ = true;
    send();
  }

  void on_error(const std::string& /*system_error*/, MonotonicTime /*time*/) override { server_.remove(this); }

  void on_drained() override { send(); }

  // False: there may be more, but not in this turn.
  bool send_writes() {
    const auto now = net::monotonic_now();
    std::size_t sent = 0;
    while (connection_->queued_bytes() < kMaxQueuedBytes) {
      if (sent >= kMaxTurnBytes) return false;
      auto write = session_.next_write(now);
      if (!write) return true;
      sent += write->size();
      connection_->write(std::move(*write));
    }
    return true;
  }

  void send() {
    const bool turn_done = send_writes();
    const bool full = connection_->queued_bytes() >= kMaxQueuedBytes;
    if (full) {
      connection_->pause_reading();  // on_drained comes
      return;
    }
    if (!turn_done) {
      timer_.start(0, [this] { send(); });
      return;
    }
    const auto due = session_.next_due();
    if (session_.finished() || (read_ended_ && !due)) {
      if (connection_->queued_bytes() == 0) server_.remove(this);
      return;
    }
    if (!read_ended_) connection_->start_reading();
    if (due) timer_.start_at(*due, [this] { send(); });
  }

  ServeServer& server_;
  ServeSession session_;
  net::Timer timer_;
  std::unique_ptr<net::TcpConnection> connection_;
  bool read_ended_ = false;
};

ServeServer::ServeServer(net::Loop& loop, const AnswerBook& book, ServeOptions options, ServeLog log)
    : loop_(loop), book_(book), options_(std::move(options)), log_(std::move(log)) {}

ServeServer::~ServeServer() = default;

Result<std::unique_ptr<ServeServer>> ServeServer::listen(net::Loop& loop, const net::SocketAddress& address,
                                                         const AnswerBook& book, ServeOptions options, ServeLog log) {
  std::unique_ptr<ServeServer> server(new ServeServer(loop, book, std::move(options), std::move(log)));
  auto listener = net::TcpListener::listen(
      loop, address, [self = server.get()](auto connection) { self->accept(std::move(connection)); });
  if (!listener) return std::unexpected(listener.error());
  server->listener_ = std::move(*listener);
  return server;
}

std::string ServeServer::local_text() const {
  return listener_ ? listener_->local_text() : "";
}

void ServeServer::accept(std::unique_ptr<net::TcpConnection> connection) {
  ++counts_.connections;
  // It fails only for a peer that is gone already.
  if (!connection->set_options({options_.nodelay, false})) return;
  auto peer = std::make_unique<Peer>(*this, std::move(connection));
  auto* added = peer.get();
  peers_.emplace(added, std::move(peer));
  added->start();
}

void ServeServer::remove(Peer* peer) {
  peers_.erase(peer);
}

void ServeServer::stop() {
  listener_.reset();
  for (auto& [address, peer] : peers_) peer->say_goodbye();
  peers_.clear();
}

}  // namespace ztape::replay
