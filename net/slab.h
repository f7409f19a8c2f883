// Reference-counted read buffers: the relay writes from them and the recorder keeps them, without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ztape::net {

// A piece of a shared buffer. Cheap to copy; the count is atomic, so that a slice may be handed to another thread.
class Slice {
 public:
  Slice() = default;
  Slice(std::shared_ptr<const uint8_t[]> owner, const uint8_t* first, std::size_t size)
      : owner_(std::move(owner)), first_(first), size_(size) {}
  static Slice copy_of(std::span<const uint8_t> bytes);
  static Slice copy_of(std::string_view bytes);

  [[nodiscard]] const uint8_t* data() const { return first_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::span<const uint8_t> span() const { return {first_, size_}; }
  [[nodiscard]] Slice subslice(std::size_t offset, std::size_t size) const {
    return Slice(owner_, first_ + offset, size);
  }

 private:
  std::shared_ptr<const uint8_t[]> owner_;
  const uint8_t* first_ = nullptr;
  std::size_t size_ = 0;
};

inline constexpr std::size_t kSlabBytes = 256 * 1024;
inline constexpr std::size_t kSmallestRead = 64 * 1024;

// Where the reads of one loop go: one slab is filled read after read, until less than kSmallestRead is left. A slab
// that nobody keeps any more is used again, from whatever thread it was let go.
class ReadSlabs {
 public:
  ReadSlabs();
  ~ReadSlabs();
  ReadSlabs(const ReadSlabs&) = delete;
  ReadSlabs& operator=(const ReadSlabs&) = delete;

  // Room for the next read: at least kSmallestRead bytes. Valid until the next call.
  std::span<uint8_t> room();
  // The first `size` bytes of that room were read into.
  Slice take(std::size_t size);

 private:
  struct FreeList;
  std::shared_ptr<FreeList> free_;
  std::shared_ptr<uint8_t[]> slab_;
  std::size_t used_ = kSlabBytes;
};

}  // namespace ztape::net
