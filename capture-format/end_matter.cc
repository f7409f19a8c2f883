#include "capture-format/end_matter.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ztape {
namespace {

constexpr uint64_t kPiece = 1 << 20;

// The block whose size entry holds byte `at` of the table, if one's does.
bool in_entry_of_unknown_block(uint64_t at, std::span<const layout::BlockSizes> known, uint64_t block_count) {
  if (known.size() == block_count || at < layout::seek_entry_offset(0)) return false;
  const uint64_t entry = (at - 8) / layout::kSeekEntryBytes;
  const uint64_t number = entry / 2;
  if (entry % 2 == 0 || number >= block_count) return false;
  const auto found = std::ranges::lower_bound(known, number, {}, &layout::BlockSizes::number);
  return found == known.end() || found->number != number;
}

}  // namespace

Result<SeekTableCheck> check_seek_table(const ByteSource& source, uint64_t offset,
                                        std::span<const layout::BlockSizes> known, uint64_t block_count) {
  SeekTableCheck check{.whole_bytes = layout::seek_table_bytes(block_count),
                       .present_bytes = source.size() - std::min(offset, source.size())};
  const uint64_t both = std::min(check.whole_bytes, check.present_bytes);
  const std::string expected = layout::seek_table(known, block_count, both);
  std::vector<uint8_t> piece;
  for (uint64_t at = 0; at < both; at += kPiece) {
    if (auto done = source.read(offset + at, std::min(kPiece, both - at), piece); !done) {
      return std::unexpected(std::move(done.error()));
    }
    for (std::size_t i = 0; i < piece.size(); ++i) {
      if (piece[i] == static_cast<uint8_t>(expected[at + i])) continue;
      if (in_entry_of_unknown_block(at + i, known, block_count)) continue;
      if (!check.wrong) check.first_wrong = offset + at + i;
      check.last_wrong = offset + at + i;
      check.wrong = true;
    }
  }
  return check;
}

}  // namespace ztape
