// Finds the blocks of a capture, in order, past whatever is damaged, and hands out those that are proven whole. The
// rules are in FORMAT.md, "Reading a damaged file". Private to this folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capture-format/byte_source.h"
#include "capture-format/layout.h"
#include "capture-format/reader.h"
#include "capture-format/record_block.h"

struct ZSTD_DCtx_s;
struct XXH3_state_s;

namespace ztape {

class BlockReader {
 public:
  enum class Step { block, wait, end };

  // Errors: io, not_a_capture, unsupported_version. Of a source that grows, waits for its start.
  static Result<BlockReader> open(ByteSource source);

  // The next whole block; `end` from the end on. `wait`: the source grows, and the next block is not all there.
  // `stop_at_trailer`: what may follow the trailer of a source that grows is not waited for.
  Step next(RecordBlock& block, bool stop_at_trailer = false);

  // ByteSource::grow. What goes wrong there is the end, and damage.
  void grow(std::chrono::milliseconds at_most);
  [[nodiscard]] bool growing() const { return source_.growing(); }

  [[nodiscard]] const std::vector<Damage>& damage() const { return damage_; }
  [[nodiscard]] const std::string& name() const { return source_.name(); }

 private:
  struct Found {
    uint64_t offset = 0;
    layout::Header header;
  };
  enum class Search { any, blocks };
  struct FreeContext {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  struct FreeHash {
    void operator()(XXH3_state_s* state) const;
  };

  explicit BlockReader(ByteSource source);

  Result<void> await_start();
  Result<void> choose_capture();
  [[nodiscard]] bool all_there(bool stop_at_trailer);
  std::span<const uint8_t> view(uint64_t offset, uint64_t length);
  std::optional<layout::Header> ours_at(uint64_t offset);
  std::optional<Found> find_next(uint64_t from, Search search);

  bool read_block(const layout::Header& header, RecordBlock& block);
  // "" if good; else why the block is not.
  std::string check(const layout::Header& header, std::span<const uint8_t> compressed, RecordBlock& block);
  bool decompress(std::span<const uint8_t> compressed);
  bool recover(RecordBlock& block, std::optional<layout::Header> stray);
  bool salvage(const std::optional<Found>& next_header, RecordBlock& block);
  void accept(const layout::Header& header);
  void at_trailer(const layout::Header& header);
  void at_unreadable_end();
  void check_end(uint64_t table_offset, uint64_t block_count);
  [[nodiscard]] layout::Header expected_trailer() const;
  [[nodiscard]] bool torn_header(std::span<const uint8_t> bytes) const;
  void add_damage(ErrorCode code, uint64_t offset, uint64_t bytes, uint64_t first_block, uint64_t block_count,
                  std::string message);
  void add_missing(uint64_t end_block);
  void add_torn_end();

  ByteSource source_;
  std::vector<uint8_t> window_;  // [window_at_, ...) of the file
  uint64_t window_at_ = 0;
  std::vector<uint8_t> scan_;
  std::vector<uint8_t> plain_;  // a block's records, decompressed; only grows
  std::size_t plain_bytes_ = 0;
  std::unique_ptr<ZSTD_DCtx_s, FreeContext> context_;

  std::optional<uint64_t> capture_id_;  // none: no whole header is in the file
  uint64_t position_ = 0;
  uint64_t searched_to_ = 0;  // of a source that grows: no header of ours begins between position_ and here
  uint64_t next_number_ = 0;
  uint64_t next_record_ = 0;
  std::vector<layout::BlockSizes> known_;  // the blocks whose headers are known
  std::unique_ptr<XXH3_state_s, FreeHash> chain_;
  TimeSpan times_;
  bool done_ = false;
  std::vector<Damage> damage_;
};

}  // namespace ztape
