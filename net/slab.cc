#include "net/slab.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace ztape::net {
namespace {

constexpr std::size_t kKeptSlabs = 64;  // 16 MiB at most lie idle
constexpr std::size_t kAlignment = 64;  // a slice starts on a cache line of its own

}  // namespace

Slice Slice::copy_of(std::span<const uint8_t> bytes) {
  auto owner = std::make_shared_for_overwrite<uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), owner.get());
  const uint8_t* first = owner.get();
  return Slice(std::move(owner), first, bytes.size());
}

Slice Slice::copy_of(std::string_view bytes) {
  return copy_of(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

// Kept by the slabs too, so that a slice may outlive its loop.
struct ReadSlabs::FreeList {
  std::mutex mutex;
  std::vector<std::unique_ptr<uint8_t[]>> slabs;

  std::unique_ptr<uint8_t[]> get() {
    {
      const std::lock_guard lock(mutex);
      if (!slabs.empty()) {
        auto slab = std::move(slabs.back());
        slabs.pop_back();
        return slab;
      }
    }
    return std::make_unique_for_overwrite<uint8_t[]>(kSlabBytes);
  }

  void put(uint8_t* slab) {
    std::unique_ptr<uint8_t[]> owned(slab);
    const std::lock_guard lock(mutex);
    if (slabs.size() < kKeptSlabs) slabs.push_back(std::move(owned));
  }
};

ReadSlabs::ReadSlabs() : free_(std::make_shared<FreeList>()) {}
ReadSlabs::~ReadSlabs() = default;

std::span<uint8_t> ReadSlabs::room() {
  if (kSlabBytes - used_ < kSmallestRead) {
    slab_ = std::shared_ptr<uint8_t[]>(free_->get().release(), [list = free_](uint8_t* slab) { list->put(slab); });
    used_ = 0;
  }
  return {slab_.get() + used_, kSlabBytes - used_};
}

Slice ReadSlabs::take(std::size_t size) {
  Slice slice(slab_, slab_.get() + used_, size);
  used_ = std::min(kSlabBytes, (used_ + size + kAlignment - 1) / kAlignment * kAlignment);
  return slice;
}

}  // namespace ztape::net
