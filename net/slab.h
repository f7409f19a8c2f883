// Reference-counted read buffers: the relay writes from them and the recorder keeps them, without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

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

}  // namespace ztape::net
