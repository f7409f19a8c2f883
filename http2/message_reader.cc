#include "http2/message_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "http2/decompress.h"

namespace ztape::http2 {

MessageReader::MessageReader(bool keep_bodies, uint64_t max_body_bytes, std::string encoding, bool web)
    : keep_bodies_(keep_bodies), max_body_bytes_(max_body_bytes), encoding_(std::move(encoding)), web_(web) {}

uint64_t MessageReader::kept_bytes() const {
  if (message_.trailers) return kMaxTrailersBytes;
  return keep_bodies_ ? max_body_bytes_ : 0;
}

const std::string& MessageReader::read(std::span<const uint8_t> bytes, int64_t time_ns, const OnMessage& on_message) {
  tail_bytes_ += bytes.size();
  while (!bytes.empty() && fault_.empty()) {
    if (prefix_bytes_ < kPrefixBytes) {
      if (prefix_bytes_ == 0) message_.first_byte_ns = time_ns;
      const std::size_t count = std::min(bytes.size(), kPrefixBytes - prefix_bytes_);
      std::memcpy(prefix_.data() + prefix_bytes_, bytes.data(), count);
      prefix_bytes_ += count;
      bytes = bytes.subspan(count);
      if (prefix_bytes_ < kPrefixBytes) break;
      if (!read_prefix()) break;
    }
    const std::size_t count = std::min<uint64_t>(bytes.size(), body_left_);
    if (message_.length <= kept_bytes() && !beginning_missing_) {
      message_.body.append(reinterpret_cast<const char*>(bytes.data()), count);
    }
    body_left_ -= count;
    bytes = bytes.subspan(count);
    if (body_left_ == 0) {
      message_.last_byte_ns = time_ns;
      finish_message(on_message);
    }
  }
  return fault_;
}

bool MessageReader::read_prefix() {
  message_.trailers = web_ && (prefix_[0] & kTrailersFlag) != 0;
  if ((prefix_[0] & ~(message_.trailers ? kTrailersFlag : 0)) > 1) {
    fault_ = "compression flag " + std::to_string(prefix_[0]) + ": this is not a gRPC message";
    return false;
  }
  message_.compressed = (prefix_[0] & 1) != 0;
  message_.length = static_cast<uint32_t>(prefix_[1]) << 24 | static_cast<uint32_t>(prefix_[2]) << 16 |
                    static_cast<uint32_t>(prefix_[3]) << 8 | prefix_[4];
  body_left_ = message_.length;
  return true;
}

std::optional<MessageReader::Position> MessageReader::position() const {
  if (!fault_.empty()) return std::nullopt;
  return Position{.prefix = {reinterpret_cast<const char*>(prefix_.data()), prefix_bytes_},
                  .body_left = body_left_,
                  .first_byte_ns = message_.first_byte_ns};
}

bool MessageReader::go_on_from(const Position& position) {
  if (position.prefix.size() > kPrefixBytes) return false;
  prefix_bytes_ = position.prefix.size();
  if (prefix_bytes_ > 0) std::memcpy(prefix_.data(), position.prefix.data(), prefix_bytes_);
  message_.first_byte_ns = position.first_byte_ns;
  tail_bytes_ = prefix_bytes_;
  if (prefix_bytes_ < kPrefixBytes) return position.body_left == 0;
  // A body of which nothing is left would have been given out.
  if (!read_prefix() || position.body_left == 0 || position.body_left > body_left_) return false;
  beginning_missing_ = position.body_left < body_left_;
  body_left_ = position.body_left;
  tail_bytes_ += message_.length - body_left_;
  return true;
}

void MessageReader::finish_message(const OnMessage& on_message) {
  tail_bytes_ -= kPrefixBytes + message_.length;
  prefix_bytes_ = 0;
  const bool keep = keep_bodies_ || message_.trailers;
  if (keep && std::exchange(beginning_missing_, false)) {
    message_.error = "its beginning is not here";
  } else if (keep && message_.length > kept_bytes()) {
    message_.error = "larger than a kept message may be";
  } else if (keep && message_.compressed) {
    auto body = decompress(encoding_, message_.body, kept_bytes());
    if (body) {
      message_.body = std::move(*body);
    } else {
      message_.error = body.error().message;
    }
  }
  on_message(std::move(message_));
  message_ = {};
}

}  // namespace ztape::http2
