#include "net/slab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace ztape::net {
namespace {

Slice read_into(ReadSlabs& slabs, std::size_t size, uint8_t value) {
  const auto room = slabs.room();
  std::fill_n(room.begin(), size, value);
  return slabs.take(size);
}

bool all_are(const Slice& slice, uint8_t value) {
  return std::all_of(slice.span().begin(), slice.span().end(), [&](uint8_t byte) { return byte == value; });
}

TEST(Slab, EveryReadHasRoomAndKeptSlicesStayAsTheyWere) {
  ReadSlabs slabs;
  std::vector<Slice> kept;
  for (std::size_t i = 0; i < 200; ++i) {
    ASSERT_GE(slabs.room().size(), kSmallestRead);
    kept.push_back(read_into(slabs, 1 + i * 317, static_cast<uint8_t>(i)));
  }
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(kept[static_cast<std::size_t>(i)].size(), static_cast<std::size_t>(1 + i * 317));
    EXPECT_TRUE(all_are(kept[static_cast<std::size_t>(i)], static_cast<uint8_t>(i))) << i;
  }
}

TEST(Slab, SmallReadsShareASlab) {
  ReadSlabs slabs;
  const auto first = read_into(slabs, 10, 1);
  const auto second = read_into(slabs, 10, 2);
  EXPECT_LT(static_cast<std::size_t>(second.data() - first.data()), std::size_t{256});
  EXPECT_TRUE(all_are(first, 1));
}

TEST(Slab, ASliceOutlivesItsSlabsAndIsLetGoOnAnotherThread) {
  Slice kept;
  {
    ReadSlabs slabs;
    for (int i = 0; i < 20; ++i) kept = read_into(slabs, 200'000, static_cast<uint8_t>(i));
  }
  std::thread([slice = std::move(kept)] { EXPECT_TRUE(all_are(slice, 19)); }).join();
}

TEST(Slab, ASubsliceKeepsTheBytes) {
  Slice part;
  {
    const auto whole = Slice::copy_of(std::string_view("downstream"));
    part = whole.subslice(4, 6);
  }
  EXPECT_EQ(std::string(part.span().begin(), part.span().end()), "stream");
}

}  // namespace
}  // namespace ztape::net
