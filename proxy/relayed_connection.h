// Drives one Relay with two sockets and the recorder. Lives on the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/connection.h"
#include "net/loop.h"
#include "proto/words.h"
#include "proxy/intake.h"
#include "proxy/opening.h"
#include "proxy/proxy_options.h"
#include "proxy/recorder.h"
#include "proxy/relay.h"
#include "proxy/route.h"

namespace ztape::proxy {

class RelayedConnection {
 public:
  struct Surroundings {
    net::Loop& loop;
    Recorder& recorder;
    const ProxyOptions& options;
    // A side did not come up; a line for the log.
    std::function<void(Side, const std::string&)> on_failure;
    std::function<void()> on_recorded;              // a chunk was given to the recorder
    std::function<void(ConnectionId)> on_moved;     // the first bytes since its opening or since sample()
    std::function<void(ConnectionId)> on_finished;  // destroys the connection
  };

  // Begins to connect upstream at once. `surroundings` must outlive it.
  RelayedConnection(const Surroundings& surroundings, ConnectionId id, Arrival arrival);
  ~RelayedConnection();
  RelayedConnection(const RelayedConnection&) = delete;
  RelayedConnection& operator=(const RelayedConnection&) = delete;

  // May destroy this object, through on_finished.
  void handle(Event event);

  // Records the TCP_INFO of both sockets.
  void sample();

  [[nodiscard]] const Relay& relay() const { return relay_; }
  // Whether the socket towards the indexer is still to be opened.
  [[nodiscard]] bool owes_upstream_socket() const { return opening_ && opening_->owes_upstream_socket(); }
  // Of our socket towards the indexer, also while it connects; "" before.
  [[nodiscard]] std::string upstream_local() const;

 private:
  struct SideHandler final : net::Connection::Handler {
    SideHandler(RelayedConnection& connection, Side at) : owner(connection), side(at) {}
    void on_read(net::Slice bytes, MonotonicTime time) override;
    void on_eof(MonotonicTime time) override;
    void on_error(const std::string& system_error, MonotonicTime time) override;
    void on_drained() override;
    RelayedConnection& owner;
    Side side;
  };

  void on_opened(Opening::Outcome outcome);
  void record_open(const std::string& upstream_peer);
  void record_tcp_info();

  void execute(action::StartReading&& action);
  void execute(action::PauseReading&& action);
  void execute(action::Send&& action);
  void execute(action::HalfClose&& action);
  void execute(action::CloseAfterDrain&& action);
  void execute(action::ResetAfterDrain&& action);
  void execute(action::Drop&& action);
  void execute(action::RecordChunk&& action);
  void execute(action::RecordEnd&& action);
  void execute(action::RecordClose&& action);

  std::unique_ptr<net::Connection>& socket(Side side) { return sockets_[index(side)]; }

  const Surroundings& surroundings_;
  const ConnectionId id_;
  const MonotonicTime accepted_;
  const std::shared_ptr<const Destination> destination_;
  const std::string announced_peer_;
  const std::string downstream_peer_;  // read at once: a socket that was reset knows it no more
  Relay relay_;
  std::vector<Action> actions_;
  SideHandler handlers_[2];
  std::unique_ptr<net::Connection> sockets_[2];
  std::unique_ptr<Opening> opening_;  // until both sockets are ready
  bool open_recorded_ = false;
  bool recorded_ = false;  // by the events under way
  bool moved_ = false;     // since the last sample
};

}  // namespace ztape::proxy
