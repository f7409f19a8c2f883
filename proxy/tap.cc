#include "proxy/tap.h"

namespace ztape::proxy {

Tap::Tap(ConnectionId connection, http2::IndexSink::OnRecord append, CallCounts& counts, AuthorityWatch& authorities)
    : builder_(connection, {.keep_headers = false, .keep_messages = false, .keep_for_state = true},
               [&counts](http2::Call&& call) { counts.add(call); }),
      index_(connection, std::move(append)),
      requests_(connection, authorities),
      fan_out_{&builder_, &index_, &requests_},
      reader_(fan_out_) {
  builder_.set_watcher(&counts);
}

void Tap::Requests::on_headers(const http2::Frame& frame, const http2::HeaderList& fields, bool /*end_stream*/,
                               bool readable) {
  if (readable && frame.direction == Direction::client_to_server) authorities.read(connection, fields);
}

void Tap::read(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns) {
  reader_.read(direction, bytes, time_ns);
}

void Tap::gap(Direction direction, const std::string& reason) {
  reader_.gap(direction, reason);
}

void Tap::end(Direction direction, int64_t time_ns) {
  reader_.end(direction);
  if (direction == Direction::server_to_client) builder_.server_ended(time_ns);
  if (!first_end_) first_end_ = direction;
}

void Tap::close(int64_t time_ns) {
  auto how = http2::EndedBy::still_open;
  if (first_end_ == Direction::client_to_server) how = http2::EndedBy::client_close;
  if (first_end_ == Direction::server_to_client) how = http2::EndedBy::server_close;
  builder_.close(how, time_ns);
}

void Tap::save(capture::ConnectionState& state) const {
  reader_.save(state);
  builder_.save(state);
}

}  // namespace ztape::proxy
