// Notices when wallets ask for the upstream by another name than its own: a server that goes by names may refuse that,
// and a recorder does not rewrite it. Lives on the recorder's thread.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "http2/frame.h"
#include "proto/words.h"

namespace ztape::capture {
class ConnectionOpen;
}  // namespace ztape::capture

namespace ztape::proxy {

class AuthorityWatch {
 public:
  using OnNotice = std::function<void(const std::string&)>;  // a line for the log
  void set_on_notice(OnNotice on_notice) { on_notice_ = std::move(on_notice); }

  void opened(const capture::ConnectionOpen& open);
  // A request's headers. Of each connection the first counts; each pair of names is told once, and kMostTold pairs at
  // most.
  void read(ConnectionId connection, const http2::HeaderList& fields);
  void closed(ConnectionId connection) { awaited_.erase(connection); }

  static constexpr std::size_t kMostTold = 8;

 private:
  OnNotice on_notice_;
  // The upstream's name, where it has one, of connections whose first request has not come.
  std::unordered_map<ConnectionId, std::string> awaited_;
  std::set<std::pair<std::string, std::string>> told_;
};

}  // namespace ztape::proxy
