// The listening side of `ztape serve`: accepts connections on a loop and gives each a ServeSession.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "net/listener.h"
#include "net/loop.h"
#include "net/tcp.h"
#include "proto/error.h"
#include "replay/answer_book.h"
#include "replay/serve_session.h"

namespace ztape::replay {

// Bytes of one connection that the kernel has not taken yet; beyond it nothing is made and nothing is read.
inline constexpr std::size_t kMaxQueuedBytes = 1024 * 1024;
// What one turn of the loop sends on one connection at most, so that the others get theirs.
inline constexpr std::size_t kMaxTurnBytes = 4 * 1024 * 1024;

class ServeServer {
 public:
  // Loop and book must outlive the server. Errors: address.
  static Result<std::unique_ptr<ServeServer>> listen(net::Loop& loop, const net::SocketAddress& address,
                                                     const AnswerBook& book, ServeOptions options, ServeLog log);
  ~ServeServer();
  ServeServer(const ServeServer&) = delete;
  ServeServer& operator=(const ServeServer&) = delete;

  [[nodiscard]] std::string local_text() const;  // with the port that port 0 became
  [[nodiscard]] const ServeCounts& counts() const { return counts_; }

  // Listens no more, says GOAWAY on every connection and closes it.
  void stop();

 private:
  class Peer;

  ServeServer(net::Loop& loop, const AnswerBook& book, ServeOptions options, ServeLog log);
  void accept(std::unique_ptr<net::TcpConnection> connection);
  void remove(Peer* peer);

  net::Loop& loop_;
  const AnswerBook& book_;
  ServeOptions options_;
  ServeLog log_;
  ServeCounts counts_;
  std::unique_ptr<net::TcpListener> listener_;
  std::unordered_map<Peer*, std::unique_ptr<Peer>> peers_;
};

}  // namespace ztape::replay
