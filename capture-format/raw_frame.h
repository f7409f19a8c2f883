// A zstd frame whose content is stored as it is (RFC 8878, 3.1.1.2.2, Raw_Block), for when there is no time to
// compress: what a record brings is copied once, to its place in the file's buffer, and summed while it is in the CPU's
// cache. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct XXH64_state_s;

namespace ztape {

class RawFrame {
 public:
  // What place() gives at most.
  static constexpr std::size_t kLargestPiece = 32 * 1024;

  RawFrame();
  ~RawFrame();
  RawFrame(const RawFrame&) = delete;
  RawFrame& operator=(const RawFrame&) = delete;

  // How many bytes a frame with this content has at most.
  static std::size_t bound(std::size_t content_bytes);

  // Begins a frame at `first`, forgetting the one before. `room` bytes are there; the content must keep to it (fits()).
  void begin(uint8_t* first, std::size_t room);
  // What there is of it, bytes_so_far(), was copied there.
  void moved(uint8_t* first, std::size_t room);
  // The place of the next `size` bytes, at most kLargestPiece; to be filled before the next call.
  uint8_t* place(std::size_t size);
  // The next bytes, however many.
  void append(std::span<const uint8_t> bytes);
  // Ends the frame; once more makes the same. How many bytes it has.
  std::size_t finish();

  [[nodiscard]] uint8_t* first() const { return first_; }
  [[nodiscard]] std::size_t content_bytes() const { return content_bytes_; }
  [[nodiscard]] std::size_t bytes_so_far() const { return static_cast<std::size_t>(at_ - first_); }
  // So many more bytes of content are sure to have room, in whatever pieces.
  [[nodiscard]] bool fits(std::size_t size) const { return bound(content_bytes_ + size) <= room_; }

 private:
  void begin_block();
  void end_block(bool last);
  void sum_placed();

  struct FreeSum {
    void operator()(XXH64_state_s* sum) const;
  };
  std::unique_ptr<XXH64_state_s, FreeSum> sum_;
  uint8_t* first_ = nullptr;
  std::size_t room_ = 0;
  uint8_t* block_ = nullptr;   // the header of the block that is open
  uint8_t* at_ = nullptr;      // behind its content
  uint8_t* summed_ = nullptr;  // up to where the content is in the sum
  std::size_t content_bytes_ = 0;
};

}  // namespace ztape
