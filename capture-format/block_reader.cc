#include "capture-format/block_reader.h"

#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "capture-format/end_matter.h"

namespace ztape {
namespace {

using layout::kHeaderBytes;
using layout::Kind;

constexpr uint64_t kScanBytes = uint64_t{1} << 20;
// A pipe is held back to its last block that could be read, and no block is longer.
constexpr uint64_t kMaxHeldBytes = (uint64_t{64} << 20) + (uint64_t{16} << 20);
constexpr uint32_t kZstdMagic = 0xFD2FB528;

std::string block_range(uint64_t first, uint64_t count) {
  if (count == 1) return "block " + std::to_string(first);
  return "blocks " + std::to_string(first) + " to " + std::to_string(first + count - 1);
}

// A zstd frame's descriptor says whether a content checksum ends it (RFC 8878, section 3.1.1.1.1).
bool has_content_checksum(std::span<const uint8_t> frame) {
  return frame.size() > 4 && (frame[4] & 0x04) != 0;
}

// `bytes` is exactly one zstd frame that says how much is in it.
bool is_one_frame(std::span<const uint8_t> bytes, uint64_t& content_bytes) {
  const std::size_t length = ZSTD_findFrameCompressedSize(bytes.data(), bytes.size());
  content_bytes = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  return !ZSTD_isError(length) && length == bytes.size() && content_bytes <= layout::kMaxBlockBytes;
}

}  // namespace

void BlockReader::FreeContext::operator()(ZSTD_DCtx_s* context) const {
  ZSTD_freeDCtx(context);
}

void BlockReader::FreeHash::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

BlockReader::BlockReader(ByteSource source)
    : source_(std::move(source)), context_(ZSTD_createDCtx()), chain_(XXH3_createState()) {
  XXH3_64bits_reset(chain_.get());
}

Result<BlockReader> BlockReader::open(ByteSource source) {
  BlockReader reader(std::move(source));
  if (auto begun = reader.await_start(); !begun) return std::unexpected(std::move(begun.error()));
  if (auto chosen = reader.choose_capture(); !chosen) return std::unexpected(std::move(chosen.error()));
  return reader;
}

// Of a source that grows the first header is enough, where it is good. Otherwise as much as is ever held.
Result<void> BlockReader::await_start() {
  constexpr std::chrono::seconds kPatience{1};  // of a file that was made a moment ago
  constexpr std::chrono::milliseconds kLook{20};
  auto waited = std::chrono::milliseconds(0);
  while (source_.growing() && source_.size() < kMaxHeldBytes) {
    if (source_.size() >= kHeaderBytes && layout::decode(view(0, kHeaderBytes))) break;
    if (!source_.is_pipe() && (source_.size() >= kHeaderBytes || waited >= kPatience)) break;
    if (auto grown = source_.grow(source_.is_pipe() ? std::chrono::milliseconds(-1) : kLook); !grown) return grown;
    waited += kLook;
  }
  return {};
}

// Whose blocks this file's blocks are: block 0 says it. Where that one is damaged, the id that most headers carry.
Result<void> BlockReader::choose_capture() {
  const auto unsupported = [this](uint16_t version) {
    return std::unexpected(Error{.code = ErrorCode::unsupported_version,
                                 .message = "is a capture of format version " + std::to_string(version) +
                                            "; this program reads version " + std::to_string(layout::kFormatVersion),
                                 .subject = name()});
  };
  std::vector<uint8_t> start;
  if (auto read = source_.read(0, layout::kMaxAnyHeaderBytes, start); !read) return read;
  if (const auto found = layout::identify(start); found && found->version != layout::kFormatVersion) {
    return unsupported(found->version);
  }
  if (const auto header = layout::decode(start); header && header->kind == Kind::block && header->number == 0) {
    capture_id_ = header->capture_id;
    // A block 0 that was put before another capture's blocks is not the one that counts.
    const auto second = layout::decode(view(kHeaderBytes + header->compressed_bytes, kHeaderBytes));
    if (source_.growing() || !second || second->capture_id == header->capture_id) return {};
    capture_id_.reset();
  }

  std::map<uint64_t, uint64_t> votes;
  uint64_t most = 0;
  std::optional<uint16_t> other_version;
  for (uint64_t offset = 0; offset < source_.size();) {
    if (auto read = source_.read(offset, kScanBytes, scan_); !read) return read;
    if (scan_.empty()) break;
    std::size_t at = 0;
    uint64_t resume = offset + scan_.size();
    if (scan_.size() == kScanBytes) resume -= layout::kMaxAnyHeaderBytes;
    while ((at = layout::find_candidate(scan_, at)) != std::string::npos && offset + at < resume) {
      const auto here = std::span(scan_).subspan(at);
      const auto header = layout::decode(here);
      if (const auto found = layout::identify(here); found && !header) other_version = found->version;
      ++at;
      if (!header) continue;
      const uint64_t count = ++votes[header->capture_id];
      if (count > most) {
        most = count;
        capture_id_ = header->capture_id;
      }
      // What a block carries may be a capture too: look behind it.
      if (header->kind == Kind::block && offset + at - 1 + kHeaderBytes + header->compressed_bytes <= source_.size()) {
        const uint64_t behind = at - 1 + kHeaderBytes + uint64_t{header->compressed_bytes};
        if (offset + behind >= resume) {
          resume = offset + behind;
          break;
        }
        at = behind;
      }
    }
    offset = resume;
  }
  if (capture_id_) return {};
  if (other_version) return unsupported(*other_version);

  const layout::HeaderBytes like = layout::encode({});
  constexpr std::size_t kIdentifying = 12;  // magic, size, "ztap"
  if (start.size() >= kIdentifying && std::memcmp(start.data(), like.data(), kIdentifying) == 0) return {};
  std::string message = "is not a capture";
  if (start.empty()) message = "is empty, not a capture";
  if (source_.growing() && source_.is_pipe()) {
    message = "is not a capture: nothing of one is in its first " + std::to_string(kMaxHeldBytes >> 20) + " MiB";
  }
  uint32_t magic = 0;
  if (start.size() >= 4) magic = start[0] | start[1] << 8 | start[2] << 16 | static_cast<uint32_t>(start[3]) << 24;
  if (magic == kZstdMagic) message = "is a zstd file, but not a capture";
  return std::unexpected(Error{.code = ErrorCode::not_a_capture, .message = message, .subject = name()});
}

// [offset, offset + length) of the file, or what of it there is. Valid until the next call. A read error ends the
// reading: it is reported as damage, and what follows counts as not there.
std::span<const uint8_t> BlockReader::view(uint64_t offset, uint64_t length) {
  const uint64_t end = std::min(offset + length, source_.size());
  if (offset < window_at_ || end > window_at_ + window_.size()) {
    window_at_ = offset;
    if (auto read = source_.read(offset, length, window_); !read) {
      if (!done_) {
        add_damage(ErrorCode::io, offset, source_.size() - offset, next_number_, 0, read.error().message);
      }
      done_ = true;
    }
  }
  const uint64_t skipped = std::min<uint64_t>(offset - window_at_, window_.size());
  return std::span<const uint8_t>(window_).subspan(skipped, std::min<uint64_t>(length, window_.size() - skipped));
}

std::optional<layout::Header> BlockReader::ours_at(uint64_t offset) {
  auto header = layout::decode(view(offset, kHeaderBytes));
  if (header && capture_id_ != header->capture_id) header.reset();
  return header;
}

// The next place from `from` on with a header of this capture that can follow what has been read.
std::optional<BlockReader::Found> BlockReader::find_next(uint64_t from, Search search) {
  for (uint64_t offset = from; offset < source_.size();) {
    if (auto read = source_.read(offset, kScanBytes, scan_); !read || scan_.size() < kHeaderBytes) return std::nullopt;
    for (std::size_t at = 0; (at = layout::find_candidate(scan_, at)) != std::string::npos; ++at) {
      const auto header = layout::decode(std::span(scan_).subspan(at));
      if (!header || capture_id_ != header->capture_id) continue;
      const bool fits = header->kind == Kind::block ? header->number >= next_number_ : search == Search::any;
      if (fits) return Found{.offset = offset + at, .header = *header};
    }
    offset += scan_.size() - (kHeaderBytes - 1);
  }
  return std::nullopt;
}

BlockReader::Step BlockReader::next(RecordBlock& block, bool stop_at_trailer) {
  while (!done_) {
    source_.forget_before(position_);
    if (source_.growing() && !all_there(stop_at_trailer)) {
      if (!source_.is_pipe() || source_.size() - position_ <= kMaxHeldBytes) return Step::wait;
      add_damage(ErrorCode::corrupt, position_, source_.size() - position_, next_number_, 0,
                 "nothing of the capture is in these bytes; more are not read");
      break;
    }
    if (position_ >= source_.size()) {
      add_torn_end();
      break;
    }
    const auto header = ours_at(position_);
    if (done_) break;
    if (!header) {
      if (recover(block, std::nullopt)) return Step::block;
    } else if (header->kind == Kind::trailer) {
      at_trailer(*header);
    } else if (header->number < next_number_) {
      recover(block, header);
    } else if (read_block(*header, block)) {
      return Step::block;
    }
  }
  done_ = true;
  return Step::end;
}

// Of a source that grows: what the next step needs has come.
bool BlockReader::all_there(bool stop_at_trailer) {
  const uint64_t here = source_.size() - std::min(position_, source_.size());
  if (here < kHeaderBytes) return false;
  const auto header = ours_at(position_);
  if (done_) return true;
  if (!header || (header->kind == Kind::block && header->number < next_number_)) {
    // What was searched in vain is not searched again each time that a little more has come.
    const auto found = find_next(std::max(position_ + 1, searched_to_), Search::any);
    if (!found) searched_to_ = source_.size() - (kHeaderBytes - 1);
    return found.has_value();
  }
  if (header->kind == Kind::trailer) {
    if (!stop_at_trailer) return here > kMaxHeldBytes / 2;  // whatever stands behind it is damage: its end would show
    return here >= kHeaderBytes + layout::seek_table_bytes(header->number);
  }
  return here >= kHeaderBytes + uint64_t{header->compressed_bytes} ||
         header->compressed_bytes > ZSTD_compressBound(layout::kMaxBlockBytes);
}

void BlockReader::grow(std::chrono::milliseconds at_most) {
  auto grown = source_.grow(at_most);
  if (grown) return;
  add_damage(grown.error().code, source_.size(), 0, next_number_, 0, grown.error().message);
  done_ = true;
}

bool BlockReader::read_block(const layout::Header& header, RecordBlock& block) {
  add_missing(header.number);
  const uint64_t begin = position_ + kHeaderBytes;
  const uint64_t end = begin + header.compressed_bytes;
  if (end > source_.size()) {
    const auto found = find_next(begin, Search::any);
    if (!found) {
      add_damage(ErrorCode::torn, position_, source_.size() - position_, header.number, 0,
                 "the file ends within block " + std::to_string(header.number));
      done_ = true;
      return false;
    }
    accept(header);
    add_damage(ErrorCode::corrupt, begin, found->offset - begin, header.number, 1,
               "block " + std::to_string(header.number) + " is not all there");
    position_ = found->offset;
    return false;
  }

  const bool too_large = header.decompressed_bytes > layout::kMaxBlockBytes ||
                         header.record_count > layout::kMaxBlockRecords ||
                         header.compressed_bytes > ZSTD_compressBound(layout::kMaxBlockBytes);
  std::string why = "is larger than a reader holds";
  if (!too_large) {
    // With the next header in the same read.
    const auto bytes = view(begin, header.compressed_bytes + kHeaderBytes);
    if (done_) return false;
    why = check(header, bytes.first(std::min<std::size_t>(bytes.size(), header.compressed_bytes)), block);
  }
  accept(header);
  if (why.empty()) {
    position_ = end;
    return true;
  }
  position_ = end;
  if (end < source_.size() && !ours_at(end)) {
    if (const auto found = find_next(begin, Search::any)) position_ = found->offset;
  }
  if (done_) return false;
  add_damage(too_large ? ErrorCode::over_limit : ErrorCode::corrupt, begin, position_ - begin, header.number, 1,
             "block " + std::to_string(header.number) + " " + why);
  return false;
}

bool BlockReader::decompress(std::span<const uint8_t> compressed) {
  uint64_t content_bytes = 0;
  if (!is_one_frame(compressed, content_bytes)) return false;
  if (plain_.size() < content_bytes) plain_.resize(content_bytes);
  plain_bytes_ =
      ZSTD_decompressDCtx(context_.get(), plain_.data(), content_bytes, compressed.data(), compressed.size());
  return !ZSTD_isError(plain_bytes_) && plain_bytes_ == content_bytes;
}

std::string BlockReader::check(const layout::Header& header, std::span<const uint8_t> compressed, RecordBlock& block) {
  if (compressed.size() != header.compressed_bytes ||
      XXH3_64bits(compressed.data(), compressed.size()) != header.checksum) {
    return "does not match its checksum";
  }
  if (!decompress(compressed) || plain_bytes_ != header.decompressed_bytes)
    return "does not decompress to what it says";
  const std::span<const uint8_t> plain(plain_.data(), plain_bytes_);
  if (!block.parse(plain, header.record_count)) return "does not consist of the records that it says";
  if (header.number != 0) return "";
  const auto& records = block.records();
  if (XXH3_64bits(plain.data(), plain.size()) != header.capture_id || records.size() != 1 ||
      !records.front()->has_capture_start()) {
    return "is not the start of this capture";
  }
  return "";
}

void BlockReader::accept(const layout::Header& header) {
  const uint64_t own = layout::own_checksum(layout::encode(header));
  uint8_t bytes[layout::kHeaderChecksumBytes];
  for (std::size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<uint8_t>(own >> (8 * i));
  XXH3_64bits_update(chain_.get(), bytes, sizeof bytes);
  known_.push_back({.number = header.number,
                    .compressed_bytes = header.compressed_bytes,
                    .decompressed_bytes = header.decompressed_bytes});
  times_.add(header.first_time_ns);
  times_.add(header.last_time_ns);
  next_number_ = header.number + 1;
  next_record_ = header.first_record + header.record_count;
}

// At a place where the next header must stand and does not, or where a block stands that has its place before
// (`stray`). True if a block could be read all the same.
bool BlockReader::recover(RecordBlock& block, std::optional<layout::Header> stray) {
  const auto here = view(position_, layout::kMaxAnyHeaderBytes);
  const auto identified = layout::identify(here);
  const bool foreign = !stray && layout::decode(here).has_value();
  const auto found = find_next(position_ + 1, Search::any);
  // A whole header that is not the next one says that its block is not the next one either.
  if (!identified && salvage(found, block)) return true;
  if (done_) return false;
  if (!found) {
    at_unreadable_end();
    return false;
  }
  const uint64_t missing = found->header.number > next_number_ ? found->header.number - next_number_ : 0;
  std::string message = "bytes that belong to no block";
  if (missing > 0) message = block_range(next_number_, missing) + " cannot be read";
  if (stray) message = "block " + std::to_string(stray->number) + " stands here out of its order";
  if (foreign) message = "a block of another capture";
  if (identified && !stray && !foreign) message = "a block of format version " + std::to_string(identified->version);
  if (missing > 0 && identified) message += "; " + block_range(next_number_, missing) + " cannot be found";
  add_damage(ErrorCode::corrupt, position_, found->offset - position_, next_number_, missing, std::move(message));
  next_number_ += missing;
  position_ = found->offset;
  return false;
}

// The zstd frame behind a damaged header. The header is made anew from it: the frame is the next block, as it was
// written, if the new header's checksum is the one that stands in the damaged header. Where nothing but that checksum
// is damaged, half of it is enough; none of it would take the end of another block, copied here, for this one.
bool BlockReader::salvage(const std::optional<Found>& next_header, RecordBlock& block) {
  layout::HeaderBytes damaged;
  const auto here = view(position_, kHeaderBytes);
  if (here.size() < kHeaderBytes) return false;
  std::ranges::copy(here, damaged.begin());

  const uint64_t begin = position_ + kHeaderBytes;
  const uint64_t until = next_header ? next_header->offset : source_.size();
  if (until <= begin) return false;
  auto frame = view(begin, std::min<uint64_t>(until - begin, ZSTD_compressBound(layout::kMaxBlockBytes)));
  if (!has_content_checksum(frame)) return false;
  const std::size_t length = ZSTD_findFrameCompressedSize(frame.data(), frame.size());
  if (ZSTD_isError(length) || length > frame.size()) return false;
  frame = frame.first(length);
  if (!decompress(frame)) return false;
  const std::span<const uint8_t> plain(plain_.data(), plain_bytes_);

  // How many records there are is for the new header to prove.
  uint64_t record_count = RecordBlock::count(plain);
  if (record_count > layout::kMaxBlockRecords || !block.parse(plain, record_count)) return false;
  const TimeSpan times = block.times();
  const layout::Header header{.kind = Kind::block,
                              .capture_id = next_number_ == 0 ? XXH3_64bits(plain.data(), plain.size()) : *capture_id_,
                              .number = next_number_,
                              .first_record = next_record_,
                              .first_time_ns = times.first_ns,
                              .last_time_ns = times.last_ns,
                              .compressed_bytes = static_cast<uint32_t>(length),
                              .decompressed_bytes = static_cast<uint32_t>(plain_bytes_),
                              .record_count = static_cast<uint32_t>(record_count),
                              .checksum = XXH3_64bits(frame.data(), frame.size())};
  if (capture_id_ && *capture_id_ != header.capture_id) return false;
  const auto anew = layout::encode(header);
  const std::size_t covered = kHeaderBytes - layout::kHeaderChecksumBytes;
  const bool same_fields = std::equal(anew.begin(), anew.begin() + covered, damaged.begin());
  std::size_t right_bytes = 0;  // of the checksum
  for (std::size_t i = covered; i < kHeaderBytes; ++i) right_bytes += anew[i] == damaged[i] ? 1 : 0;
  const std::size_t enough = same_fields ? layout::kHeaderChecksumBytes / 2 : layout::kHeaderChecksumBytes;
  if (right_bytes < enough) return false;
  if (!check(header, frame, block).empty()) return false;

  add_damage(ErrorCode::corrupt, position_, kHeaderBytes, header.number, 0,
             "the header of block " + std::to_string(header.number) + " is damaged; its records could be read");
  capture_id_ = header.capture_id;
  accept(header);
  position_ = begin + length;
  return true;
}

layout::Header BlockReader::expected_trailer() const {
  return {.kind = Kind::trailer,
          .capture_id = capture_id_.value_or(0),
          .number = next_number_,
          .first_record = next_record_,
          .first_time_ns = times_.first_ns,
          .last_time_ns = times_.last_ns,
          .checksum = XXH3_64bits_digest(chain_.get())};
}

void BlockReader::at_trailer(const layout::Header& header) {
  const uint64_t table = position_ + kHeaderBytes;
  if (!check_seek_table(source_, table, known_, header.number).value_or(SeekTableCheck{}).exact()) {
    if (const auto found = find_next(table, Search::blocks)) {
      const uint64_t missing = found->header.number - next_number_;
      add_damage(ErrorCode::corrupt, position_, found->offset - position_, next_number_, missing,
                 "a trailer, but blocks follow");
      next_number_ = found->header.number;
      position_ = found->offset;
      return;
    }
  }
  add_missing(header.number);
  const bool all_known = known_.size() == header.number;
  if (header.number < next_number_ || (all_known && layout::encode(header) != layout::encode(expected_trailer()))) {
    add_damage(ErrorCode::corrupt, position_, kHeaderBytes, 0, 0, "the trailer does not fit the blocks before it");
  }
  check_end(table, header.number);
  done_ = true;
}

void BlockReader::check_end(uint64_t table_offset, uint64_t block_count) {
  const auto check = check_seek_table(source_, table_offset, known_, block_count);
  if (!check) {
    add_damage(ErrorCode::io, table_offset, source_.size() - table_offset, 0, 0, check.error().message);
    return;
  }
  if (check->wrong) {
    add_damage(ErrorCode::corrupt, check->first_wrong, check->last_wrong - check->first_wrong + 1, 0, 0,
               "the seek table does not fit the blocks");
  }
  if (check->present_bytes < check->whole_bytes) {
    add_damage(ErrorCode::torn, table_offset, check->present_bytes, 0, 0, "the file ends within its seek table");
  }
  if (check->present_bytes > check->whole_bytes) {
    add_damage(ErrorCode::corrupt, table_offset + check->whole_bytes, check->present_bytes - check->whole_bytes, 0, 0,
               "bytes after the end of the capture");
  }
}

// `bytes`, up to the end of the file, are the beginning of the header that is due.
bool BlockReader::torn_header(std::span<const uint8_t> bytes) const {
  if (bytes.size() >= kHeaderBytes) return false;
  layout::Header due{.number = next_number_, .first_record = next_record_};
  if (capture_id_) {
    due.capture_id = *capture_id_;
  } else {
    for (std::size_t i = 16; i < std::min<std::size_t>(bytes.size(), 24); ++i) {
      due.capture_id |= static_cast<uint64_t>(bytes[i]) << (8 * (i - 16));
    }
  }
  if (layout::may_begin(bytes, due)) return true;
  const auto trailer = layout::encode(expected_trailer());
  return known_.size() == next_number_ && std::equal(bytes.begin(), bytes.end(), trailer.begin());
}

// No header of ours stands from here on.
void BlockReader::at_unreadable_end() {
  done_ = true;
  const uint64_t rest = source_.size() - position_;
  const auto here = view(position_, kHeaderBytes);
  if (torn_header(here)) {
    add_damage(ErrorCode::torn, position_, rest, next_number_, 0,
               "the file ends within the header after " +
                   (next_number_ == 0 ? std::string("its start") : "block " + std::to_string(next_number_ - 1)));
    return;
  }
  if (rest >= kHeaderBytes) {
    const auto check = check_seek_table(source_, position_ + kHeaderBytes, known_, next_number_);
    if (check && check->exact()) {
      add_damage(ErrorCode::corrupt, position_, kHeaderBytes, 0, 0, "the trailer is damaged");
      return;
    }
  }
  add_damage(ErrorCode::corrupt, position_, rest, next_number_, 0, "nothing from here on can be read");
  add_torn_end();
}

void BlockReader::add_torn_end() {
  add_damage(ErrorCode::torn, source_.size(), 0, next_number_, 0,
             "the file ends without a trailer: whoever wrote it did not finish");
}

void BlockReader::add_missing(uint64_t end_block) {
  if (end_block <= next_number_) return;
  const uint64_t count = end_block - next_number_;
  add_damage(ErrorCode::corrupt, position_, 0, next_number_, count,
             block_range(next_number_, count) + (count == 1 ? " is" : " are") + " missing");
  next_number_ = end_block;
}

void BlockReader::add_damage(ErrorCode code, uint64_t offset, uint64_t bytes, uint64_t first_block,
                             uint64_t block_count, std::string message) {
  damage_.push_back({.code = code,
                     .offset = offset,
                     .bytes = bytes,
                     .first_block = first_block,
                     .block_count = block_count,
                     .message = std::move(message)});
}

}  // namespace ztape
