#include "bench/block_answers.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace ztape::bench {
namespace {

constexpr std::size_t kPrefixBytes = 5;
constexpr std::size_t kBatchBytes = 32 * 1024;  // tonic's buffer: it is sent once it holds as much
constexpr std::size_t kBlockBytes = 2048;

uint32_t length_of(const uint8_t* prefix) {
  return uint32_t{prefix[1]} << 24 | uint32_t{prefix[2]} << 16 | uint32_t{prefix[3]} << 8 | prefix[4];
}

}  // namespace

Chain::Chain(const std::string& path, Framing framing) : framing_(framing) {
  std::ifstream file(path, std::ios::binary);
  bytes_.assign(std::istreambuf_iterator<char>(file), {});
  bool small = false;
  std::size_t batch = 0;
  for (std::size_t at = 0; at + kPrefixBytes <= bytes_.size();) {
    const std::size_t length = kPrefixBytes + length_of(&bytes_[at]);
    if (length > bytes_.size() - at) break;
    at += length;
    small = small || length <= kBlockBytes;
    message_ends_.push_back(at);
    if (framing == Framing::one_frame_a_message || at - batch >= kBatchBytes) frame_ends_.push_back(batch = at);
  }
  if (!small || message_ends_.back() != bytes_.size()) {
    std::fprintf(stderr, "block_server: %s is no chain of gRPC messages\n", path.c_str());
    std::exit(2);
  }
  frame_ends_.push_back(bytes_.size());
}

Chain::Answer Chain::next_block() {
  for (;; ++block_) {
    block_ %= message_ends_.size();
    const std::size_t begin = block_ == 0 ? 0 : message_ends_[block_ - 1];
    const std::size_t length = message_ends_[block_] - begin;
    if (length > kBlockBytes) continue;
    ++block_;
    return {.position = begin, .left = length};
  }
}

Chain::Answer Chain::next_part(std::size_t parts) {
  const auto cut = [&](std::size_t part) {
    const std::size_t message = message_ends_.size() * part / parts;
    return message == 0 ? 0 : message_ends_[message - 1];
  };
  const std::size_t part = part_++ % parts;
  return {.position = cut(part), .left = cut(part + 1) - cut(part)};
}

Chain::Answer Chain::sized(std::size_t message_bytes, std::size_t messages) {
  return {.left = (kPrefixBytes + message_bytes) * messages, .message_bytes = message_bytes};
}

std::size_t Chain::frame_end(std::size_t position) const {
  return *std::ranges::upper_bound(frame_ends_, position);
}

std::size_t Chain::fill(Answer& answer, std::span<uint8_t> payload) {
  std::size_t count = std::min(payload.size(), answer.left);
  if (answer.message_bytes == 0) {
    count = std::min(count, frame_end(answer.position) - answer.position);
    std::memcpy(payload.data(), &bytes_[answer.position], count);
    answer.position += count;
    answer.left -= count;
    return count;
  }
  const std::size_t whole = kPrefixBytes + answer.message_bytes;
  if (framing_ == Framing::one_frame_a_message) count = std::min(count, whole - answer.sent % whole);
  for (std::size_t done = 0; done < count;) {
    const std::size_t at = answer.sent % whole;
    std::size_t piece = 1;
    if (at < kPrefixBytes) {
      payload[done] = at == 0 ? 0 : static_cast<uint8_t>(answer.message_bytes >> (8 * (kPrefixBytes - 1 - at)));
    } else {
      loose_ %= bytes_.size();
      piece = std::min({count - done, whole - at, bytes_.size() - loose_});
      std::memcpy(&payload[done], &bytes_[loose_], piece);
      loose_ += piece;
    }
    done += piece;
    answer.sent += piece;
  }
  answer.left -= count;
  return count;
}

}  // namespace ztape::bench
