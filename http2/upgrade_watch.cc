#include "http2/upgrade_watch.h"

#include <algorithm>

#include "http2/base64.h"

namespace ztape::http2 {

UpgradeWatch::State UpgradeWatch::read(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns) {
  held_.push_back({direction, {bytes.begin(), bytes.end()}, time_ns});
  held_bytes_ += bytes.size();
  if (held_bytes_ > kMaxHeldBytes) state_ = State::declined;
  if (state_ != State::watching) return state_;
  const std::size_t taken = reader_.read(direction, bytes, time_ns);
  http1_bytes_[index(direction)] += taken;
  if (switching_ && state_ == State::watching) state_ = request_whole_ ? State::upgraded : State::declined;
  return state_;
}

uint64_t UpgradeWatch::held_bytes(Direction direction) const {
  uint64_t bytes = 0;
  for (const auto& held : held_) bytes += held.direction == direction ? held.bytes.size() : 0;
  return bytes;
}

void UpgradeWatch::on_head(Direction direction, const Http1Head& head, int64_t time_ns) {
  if (direction == Direction::client_to_server) {
    request_.head_ns = time_ns;
    if (!head.upgrade || request_whole_ || !take_request(head)) state_ = State::declined;
    return;
  }
  const auto* protocol = find_header(head.fields, "upgrade");
  switching_ = head.upgrade && protocol && *protocol == "h2c";
  if (!switching_) state_ = State::declined;
}

bool UpgradeWatch::take_request(const Http1Head& head) {
  const auto* protocol = find_header(head.fields, "upgrade");
  const auto* text = find_header(head.fields, "http2-settings");
  if (!protocol || protocol->find("h2c") == std::string::npos || !text) return false;
  const auto payload = decode_base64url(*text);
  if (!payload || payload->size() % 6 != 0) return false;
  request_.settings = read_settings(*payload);
  const auto* host = find_header(head.fields, "host");
  request_.fields = {{":method", head.method},
                     {":scheme", "http"},
                     {":authority", host ? *host : std::string()},
                     {":path", head.target}};
  // Of the connection, not of the request (RFC 9113, section 8.2.2).
  static constexpr std::string_view kOfTheConnection[] = {"connection", "host", "http2-settings", "upgrade"};
  for (const auto& field : head.fields) {
    if (std::ranges::find(kOfTheConnection, field.name) == std::end(kOfTheConnection)) request_.fields.push_back(field);
  }
  return true;
}

void UpgradeWatch::on_body(Direction direction, std::span<const uint8_t> piece, int64_t /*time_ns*/) {
  if (direction == Direction::client_to_server) request_.body.insert(request_.body.end(), piece.begin(), piece.end());
}

void UpgradeWatch::on_end(Direction direction, int64_t time_ns) {
  if (direction != Direction::client_to_server) return;
  request_whole_ = true;
  request_.end_ns = time_ns;
}

void UpgradeWatch::on_lost(Direction /*direction*/, const std::string& /*reason*/) {
  state_ = State::declined;
}

}  // namespace ztape::http2
