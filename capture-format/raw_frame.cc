#include "capture-format/raw_frame.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace ztape {
namespace {

// RFC 8878, 3.1.1: magic; descriptor: content size in 4 bytes, single segment, content checksum; content size.
constexpr uint8_t kHead[] = {0x28, 0xB5, 0x2F, 0xFD, 0b10'1'00'1'00};
constexpr std::size_t kFrameHeaderBytes = sizeof(kHead) + 4;
constexpr std::size_t kBlockHeaderBytes = 3;
constexpr std::size_t kChecksumBytes = 4;
constexpr std::size_t kBlockBytes = 128 * 1024;  // Block_Maximum_Size
constexpr std::ptrdiff_t kLeastSummedBytes = 4096;
// A block that place() closed holds at least so much.
constexpr std::size_t kLeastBlockBytes = kBlockBytes - RawFrame::kLargestPiece;

void put_le(uint8_t* at, uint32_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<uint8_t>(value >> 8 * i);
}

}  // namespace

void RawFrame::FreeSum::operator()(XXH64_state_s* sum) const {
  XXH64_freeState(sum);
}

RawFrame::RawFrame() : sum_(XXH64_createState()) {}
RawFrame::~RawFrame() = default;

std::size_t RawFrame::bound(std::size_t content_bytes) {
  return kFrameHeaderBytes + content_bytes + kBlockHeaderBytes * (content_bytes / kLeastBlockBytes + 2) +
         kChecksumBytes;
}

void RawFrame::begin(uint8_t* first, std::size_t room) {
  assert(room >= bound(0));
  first_ = first;
  room_ = room;
  std::memcpy(first, kHead, sizeof(kHead));
  at_ = first + kFrameHeaderBytes;
  content_bytes_ = 0;
  XXH64_reset(sum_.get(), 0);
  begin_block();
}

void RawFrame::moved(uint8_t* first, std::size_t room) {
  const auto at = [&](const uint8_t* before) { return first + (before - first_); };
  block_ = at(block_);
  summed_ = at(summed_);
  at_ = at(at_);
  first_ = first;
  room_ = room;
}

void RawFrame::begin_block() {
  block_ = at_;
  at_ += kBlockHeaderBytes;
  summed_ = at_;
}

void RawFrame::end_block(bool last) {
  sum_placed();
  const auto size = static_cast<uint32_t>(at_ - block_ - kBlockHeaderBytes);
  put_le(block_, size << 3 | (last ? 1 : 0), kBlockHeaderBytes);  // type 0: raw
}

void RawFrame::sum_placed() {
  XXH64_update(sum_.get(), summed_, static_cast<std::size_t>(at_ - summed_));
  summed_ = at_;
}

uint8_t* RawFrame::place(std::size_t size) {
  assert(size <= kLargestPiece && fits(size));
  if (static_cast<std::size_t>(at_ - block_) - kBlockHeaderBytes + size > kBlockBytes) {
    end_block(false);
    begin_block();
  }
  content_bytes_ += size;
  uint8_t* const placed = at_;
  at_ += size;
  return placed;
}

void RawFrame::append(std::span<const uint8_t> bytes) {
  assert(fits(bytes.size()));
  content_bytes_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t left = kBlockBytes - (static_cast<std::size_t>(at_ - block_) - kBlockHeaderBytes);
    const std::size_t size = std::min(left, bytes.size());
    std::memcpy(at_, bytes.data(), size);
    at_ += size;
    bytes = bytes.subspan(size);
    if (size == left) {
      end_block(false);
      begin_block();
    }
  }
  // Small pieces together: a sum has its price for each call.
  if (at_ - summed_ >= kLeastSummedBytes) sum_placed();
}

std::size_t RawFrame::finish() {
  end_block(true);
  put_le(first_ + sizeof(kHead), static_cast<uint32_t>(content_bytes_), 4);
  put_le(at_, static_cast<uint32_t>(XXH64_digest(sum_.get())), kChecksumBytes);
  return static_cast<std::size_t>(at_ + kChecksumBytes - first_);
}

}  // namespace ztape
