#include "proxy/proxy_header_wait.h"

#include <utility>

namespace ztape::proxy {

ProxyHeaderWait::ProxyHeaderWait(net::Loop& loop, std::unique_ptr<net::TcpConnection> connection, int64_t patience_ns,
                                 std::function<void(Outcome)> on_done)
    : connection_(std::move(connection)), on_done_(std::move(on_done)), timer_(loop) {
  connection_->set_handler(this);
  connection_->start_reading();
  timer_.start(patience_ns, [this] { done("its PROXY header did not come in time"); });
}

void ProxyHeaderWait::on_read(net::Slice bytes, MonotonicTime time) {
  const auto taken = reader_.take(bytes.span());
  if (!reader_.problem().empty()) return done(reader_.problem());
  if (!reader_.whole()) return;
  connection_->pause_reading();
  connection_->unread(bytes.subslice(taken, bytes.size() - taken), time);
  done("");
}

void ProxyHeaderWait::on_eof(MonotonicTime /*time*/) {
  done("it ended before its PROXY header");
}

void ProxyHeaderWait::on_error(const std::string& system_error, MonotonicTime /*time*/) {
  done("it failed before its PROXY header: " + system_error);
}

void ProxyHeaderWait::done(std::string problem) {
  timer_.cancel();
  const auto on_done = std::exchange(on_done_, nullptr);
  on_done({.connection = std::move(connection_),
           .source = reader_.source(),
           .problem = std::move(problem),
           .silent = reader_.untouched()});
}

}  // namespace ztape::proxy
