#include "capture-format/writer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture-format/layout.h"
#include "capture-format/output_file.h"
#include "capture-format/raw_frame.h"
#include "capture-format/record_block.h"
#include "proto/wire_fields.h"

namespace ztape {
namespace {

using google::protobuf::io::CodedOutputStream;

// Leaves room for one record of the largest size in a block of the largest size.
constexpr std::size_t kLargestBlockBytes = layout::kMaxBlockBytes - layout::kMaxRecordBytes - 16;
constexpr uint64_t kMostEndBlocks = 16;  // that are written after begin_end()
// What one read of the proxy brings, and more: a larger record makes larger room.
constexpr std::size_t kUsualRecordBytes = 320 * 1024;
constexpr int kHighestLevel = 19;

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct FreeHash {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};
using Hash = std::unique_ptr<XXH3_state_t, FreeHash>;

Hash new_hash() {
  Hash hash(XXH3_createState());
  XXH3_64bits_reset(hash.get());
  return hash;
}

// What this writer was given of one direction of a connection.
struct DirectionSum {
  uint64_t bytes = 0;
  Hash hash = new_hash();
  capture::End end = capture::NOT_ENDED;

  void add(std::span<const uint8_t> more, capture::End how) {
    bytes += more.size();
    if (!more.empty()) XXH3_64bits_update(hash.get(), more.data(), more.size());
    if (how != capture::NOT_ENDED) end = how;
  }

  void fill(capture::DirectionTotal& total) const {
    total.set_bytes(bytes);
    total.set_xxh3_64(XXH3_64bits_digest(hash.get()));
    total.set_end(end);
  }
};

std::size_t bytes_field_size(std::size_t length) {
  return length == 0 ? 0 : length_field_size(length);
}

uint8_t* put_bytes_head(int number, std::size_t length, uint8_t* at) {
  return length == 0 ? at : put_length_head(number, length, at);
}

// The length is the record's ByteSizeLong(), just called.
void serialize(const capture::Record& record, uint8_t* at, std::size_t length) {
  google::protobuf::io::ArrayOutputStream array(at, static_cast<int>(length));
  CodedOutputStream out(&array);            // its destructor writes the rest
  out.SetSerializationDeterministic(true);  // the same records give the same bytes: maps are sorted
  record.SerializeWithCachedSizes(&out);
}

}  // namespace

struct CaptureWriter::Impl {
  std::unique_ptr<OutputFile> file;
  WriterOptions options;
  std::optional<Error> error;
  std::optional<Error> no_room;  // the open block waits for room
  bool finished = false;
  bool ending = false;
  std::size_t end_bytes = 0;

  std::unique_ptr<ZSTD_CCtx, FreeContext> context{ZSTD_createCCtx()};
  int level = 1;
  bool stored = false;  // the open block, or the next: its records are in `raw`, not in `pending`
  std::string pending;
  RawFrame raw;
  uint32_t pending_records = 0;
  TimeSpan pending_times;

  uint64_t capture_id = 0;
  uint64_t in_file = 0;  // up to the end of a block
  uint64_t records = 0;  // in the blocks written
  TimeSpan times;
  std::vector<layout::BlockSizes> blocks;
  std::deque<uint64_t> ends;  // where the blocks end that are not known to be in the file
  Hash chain = new_hash();    // over the block headers' own checksums
  std::unordered_map<ConnectionId, std::array<DirectionSum, 2>> sums;

  Result<void> usable() const;
  Result<void> fail(std::string message);
  Result<void> failed(const Error& why);  // from now on
  [[nodiscard]] std::size_t open_bytes() const { return stored ? raw.content_bytes() : pending.size(); }
  // A record of `length` bytes follows: its length is put before it.
  Result<void> begin_record(std::size_t length);
  // The place of the next `size` bytes of it, at most RawFrame::kLargestPiece; valid until the next call.
  uint8_t* place(std::size_t size);
  void add(std::span<const uint8_t> bytes);
  Result<void> end_record();
  Result<void> write_block();
  // The zstd frame of the open block; the room for the block's header stands before it.
  Result<std::size_t> make_frame(uint8_t*& header);
  void clear_block();
  Result<void> put_chunk(const ChunkView& chunk);
  void note_in_file();
  void set_level(int level);
};

Result<void> CaptureWriter::Impl::usable() const {
  if (error) return std::unexpected(*error);
  if (no_room) return std::unexpected(*no_room);
  if (finished) {
    return std::unexpected(
        Error{.code = ErrorCode::usage, .message = "the capture is finished", .subject = file->name()});
  }
  return {};
}

Result<void> CaptureWriter::Impl::fail(std::string message) {
  error = Error{.code = ErrorCode::io, .message = std::move(message), .subject = file->name(), .offset = file->size()};
  return std::unexpected(*error);
}

// No more than the last whole block is left of the file.
Result<void> CaptureWriter::Impl::failed(const Error& why) {
  if (why.code == ErrorCode::no_room) {
    no_room = why;
  } else if (!error) {
    error = why;
    note_in_file();
    file->cut(in_file);
  }
  return std::unexpected(why);
}

void CaptureWriter::Impl::note_in_file() {
  const uint64_t there = file->in_file();
  while (!ends.empty() && ends.front() <= there) {
    in_file = ends.front();
    ends.pop_front();
  }
}

void CaptureWriter::Impl::set_level(int new_level) {
  level = new_level;
  if (level > kStoredLevel) {
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, std::min(level, kHighestLevel));
  }
}

Result<void> CaptureWriter::Impl::begin_record(std::size_t length) {
  if (length > layout::kMaxRecordBytes) {
    return std::unexpected(
        Error{.code = ErrorCode::over_limit,
              .message = "a record of " + std::to_string(length) + " bytes is larger than a capture holds",
              .subject = file->name()});
  }
  const std::size_t prefix = varint_size(length);
  if (pending_records == 0) {
    stored = level <= kStoredLevel && !blocks.empty();
    if (stored) {
      const std::size_t room = RawFrame::bound(options.block_bytes + std::max(kUsualRecordBytes, prefix + length));
      raw.begin(file->room(layout::kHeaderBytes + room) + layout::kHeaderBytes, room);
    }
  }
  if (stored && !raw.fits(prefix + length)) {
    const std::size_t room = RawFrame::bound(raw.content_bytes() + prefix + length);
    auto* const first = file->room(layout::kHeaderBytes + room, layout::kHeaderBytes + raw.bytes_so_far());
    raw.moved(first + layout::kHeaderBytes, room);
  }
  put_varint(length, place(prefix));
  return {};
}

uint8_t* CaptureWriter::Impl::place(std::size_t size) {
  if (stored) return raw.place(size);
  const std::size_t held = pending.size();
  // Not the size it is called with: GCC 12's library passes the new capacity there.
  pending.resize_and_overwrite(held + size, [wanted = held + size](char*, std::size_t) { return wanted; });
  return reinterpret_cast<uint8_t*>(pending.data()) + held;
}

void CaptureWriter::Impl::add(std::span<const uint8_t> bytes) {
  if (stored) return raw.append(bytes);
  pending.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<void> CaptureWriter::Impl::end_record() {
  ++pending_records;
  if (open_bytes() >= options.block_bytes || pending_records == layout::kMaxBlockRecords) return write_block();
  return {};
}

Result<std::size_t> CaptureWriter::Impl::make_frame(uint8_t*& header) {
  if (stored) {
    const std::size_t size = raw.finish();
    header = raw.first() - layout::kHeaderBytes;
    return size;
  }
  const std::size_t bound = ZSTD_compressBound(pending.size());
  header = file->room(layout::kHeaderBytes + bound);
  const std::size_t size =
      ZSTD_compress2(context.get(), header + layout::kHeaderBytes, bound, pending.data(), pending.size());
  if (ZSTD_isError(size)) {
    return std::unexpected(Error{.code = ErrorCode::io,
                                 .message = std::string("zstd: ") + ZSTD_getErrorName(size),
                                 .subject = file->name(),
                                 .offset = file->size()});
  }
  return size;
}

Result<void> CaptureWriter::Impl::write_block() {
  if (pending_records == 0) return {};
  if (blocks.size() == layout::kMaxBlocks) return fail("the file has as many blocks as a capture can have");
  uint8_t* outgoing = nullptr;
  const auto frame = make_frame(outgoing);
  if (!frame) return failed(frame.error());
  if (blocks.empty()) capture_id = XXH3_64bits(pending.data(), pending.size());
  const layout::Header header{.kind = layout::Kind::block,
                              .capture_id = capture_id,
                              .number = blocks.size(),
                              .first_record = records,
                              .first_time_ns = pending_times.first_ns,
                              .last_time_ns = pending_times.last_ns,
                              .compressed_bytes = static_cast<uint32_t>(*frame),
                              .decompressed_bytes = static_cast<uint32_t>(open_bytes()),
                              .record_count = pending_records,
                              .checksum = XXH3_64bits(outgoing + layout::kHeaderBytes, *frame)};
  const std::size_t size = layout::kHeaderBytes + *frame;
  if (options.keep_room_for_the_end && !ending) {
    const auto end = layout::kHeaderBytes + layout::seek_table_bytes(blocks.size() + kMostEndBlocks) + end_bytes;
    if (auto room = file->keep_room(size + end); !room) return failed(room.error());
  }
  const auto bytes = layout::encode(header);
  std::memcpy(outgoing, bytes.data(), bytes.size());
  if (auto done = file->commit(size); !done) return failed(done.error());

  XXH3_64bits_update(chain.get(), bytes.data() + bytes.size() - layout::kHeaderChecksumBytes,
                     layout::kHeaderChecksumBytes);
  blocks.push_back({.number = header.number,
                    .compressed_bytes = header.compressed_bytes,
                    .decompressed_bytes = header.decompressed_bytes});
  ends.push_back(file->size());
  note_in_file();
  records += pending_records;
  times.add(pending_times);
  clear_block();
  return {};
}

void CaptureWriter::Impl::clear_block() {
  pending.clear();
  pending_records = 0;
  pending_times = {};
  stored = false;
}

Result<void> CaptureWriter::Impl::put_chunk(const ChunkView& chunk) {
  const auto direction = static_cast<uint64_t>(chunk.direction);
  const auto time = static_cast<uint64_t>(chunk.time_ns);  // int64 fields are written as two's complement
  const std::size_t end_bytes_of_it = varint_field_size(chunk.end) + bytes_field_size(chunk.error.size());
  const std::size_t body = varint_field_size(chunk.connection) + varint_field_size(direction) +
                           varint_field_size(chunk.offset) + varint_field_size(time) +
                           bytes_field_size(chunk.bytes.size()) + end_bytes_of_it;
  const std::size_t length = 1 + varint_size(body) + body;
  if (auto ok = begin_record(length); !ok) return ok;
  uint8_t* at = place(length - chunk.bytes.size() - end_bytes_of_it);
  at = put_length_head(capture::Record::kChunkFieldNumber, body, at);
  at = put_varint_field(capture::Chunk::kConnectionFieldNumber, chunk.connection, at);
  at = put_varint_field(capture::Chunk::kDirectionFieldNumber, direction, at);
  at = put_varint_field(capture::Chunk::kOffsetFieldNumber, chunk.offset, at);
  at = put_varint_field(capture::Chunk::kTimeNsFieldNumber, time, at);
  put_bytes_head(capture::Chunk::kBytesFieldNumber, chunk.bytes.size(), at);
  add(chunk.bytes);
  if (end_bytes_of_it > 0) {
    at = place(end_bytes_of_it - chunk.error.size());
    at = put_varint_field(capture::Chunk::kEndFieldNumber, chunk.end, at);
    put_bytes_head(capture::Chunk::kErrorFieldNumber, chunk.error.size(), at);
    add({reinterpret_cast<const uint8_t*>(chunk.error.data()), chunk.error.size()});
  }
  pending_times.add(chunk.time_ns);
  sums[chunk.connection][index(chunk.direction)].add(chunk.bytes, chunk.end);
  return end_record();
}

CaptureWriter::CaptureWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

CaptureWriter::~CaptureWriter() {
  auto& w = *impl_;
  if (!w.error && !w.no_room && !w.finished) {
    [[maybe_unused]] const auto done = w.write_block();  // nobody is left to tell
  }
}

Result<std::unique_ptr<CaptureWriter>> CaptureWriter::create(const std::string& path, capture::CaptureStart start,
                                                             const WriterOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->options.block_bytes = std::clamp<std::size_t>(options.block_bytes, 1, kLargestBlockBytes);
  auto file = OutputFile::create(path, options.overwrite);
  if (!file) return std::unexpected(std::move(file.error()));
  impl->file = std::move(*file);
  ZSTD_CCtx_setParameter(impl->context.get(), ZSTD_c_checksumFlag, 1);
  impl->set_level(options.compression_level);
  std::unique_ptr<CaptureWriter> writer(new CaptureWriter(std::move(impl)));

  start.set_format_version(layout::kFormatVersion);
  capture::Record record;
  *record.mutable_capture_start() = std::move(start);
  auto done = writer->append(record);
  if (done) done = writer->flush();
  if (!done) {
    // Nothing of a capture is in it: leave no empty file behind.
    if (!options.overwrite) writer->impl_->file->remove(path);
    writer->impl_->finished = true;
    return std::unexpected(std::move(done.error()));
  }
  return writer;
}

Result<void> CaptureWriter::append(const capture::Record& record) {
  auto& w = *impl_;
  if (auto ok = w.usable(); !ok) return ok;
  const std::size_t length = record.ByteSizeLong();
  if (auto ok = w.begin_record(length); !ok) return ok;
  if (length <= RawFrame::kLargestPiece) {
    serialize(record, w.place(length), length);
  } else {
    std::string bytes(length, '\0');
    serialize(record, reinterpret_cast<uint8_t*>(bytes.data()), length);
    w.add({reinterpret_cast<const uint8_t*>(bytes.data()), length});
  }
  w.pending_times.add(record);
  if (record.has_chunk()) {
    const auto& chunk = record.chunk();
    const auto& bytes = chunk.bytes();
    const std::size_t direction = chunk.direction() == capture::SERVER_TO_CLIENT ? 1 : 0;
    w.sums[chunk.connection()][direction].add({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
                                              chunk.end());
  } else if (record.has_connection_state()) {
    const auto& state = record.connection_state();
    auto& sums = w.sums[state.connection()];
    sums[index(Direction::client_to_server)].add({}, state.client_to_server().end());
    sums[index(Direction::server_to_client)].add({}, state.server_to_client().end());
  } else if (record.has_connection_close()) {
    w.sums.erase(record.connection_close().connection());
  }
  return w.end_record();
}

Result<void> CaptureWriter::append_encoded(const EncodedRecord& record) {
  auto& w = *impl_;
  if (auto ok = w.usable(); !ok) return ok;
  if (auto ok = w.begin_record(record.bytes.size()); !ok) return ok;
  w.add(record.bytes);
  w.pending_times.add(record.first_ns);
  w.pending_times.add(record.last_ns);
  return w.end_record();
}

Result<void> CaptureWriter::append_chunk(const ChunkView& chunk) {
  auto& w = *impl_;
  if (auto ok = w.usable(); !ok) return ok;
  ChunkView part = chunk;
  while (part.bytes.size() > layout::kMaxChunkBytes) {
    const auto rest = part.bytes.subspan(layout::kMaxChunkBytes);
    part.bytes = part.bytes.first(layout::kMaxChunkBytes);
    part.end = capture::NOT_ENDED;
    part.error = {};
    if (auto done = w.put_chunk(part); !done) return done;
    part.offset += layout::kMaxChunkBytes;
    part.bytes = rest;
    part.end = chunk.end;
    part.error = chunk.error;
  }
  return w.put_chunk(part);
}

Result<void> CaptureWriter::append_close(capture::ConnectionClose close) {
  auto& w = *impl_;
  if (auto ok = w.usable(); !ok) return ok;
  const auto& sums = w.sums[close.connection()];
  sums[index(Direction::client_to_server)].fill(*close.mutable_client_to_server());
  sums[index(Direction::server_to_client)].fill(*close.mutable_server_to_client());
  capture::Record record;
  *record.mutable_connection_close() = std::move(close);
  return append(record);
}

Result<void> CaptureWriter::flush() {
  auto& w = *impl_;
  w.no_room.reset();
  if (auto ok = w.usable(); !ok) return ok;
  if (auto done = w.write_block(); !done) return done;
  if (auto done = w.file->flush(); !done) return w.failed(done.error());
  w.note_in_file();
  return {};
}

void CaptureWriter::drop_block() {
  auto& w = *impl_;
  w.no_room.reset();
  w.clear_block();
}

void CaptureWriter::begin_end() {
  impl_->ending = true;
}

void CaptureWriter::set_end_bytes(std::size_t bytes) {
  impl_->end_bytes = bytes;
}

Result<void> CaptureWriter::look_for_room(std::size_t bytes) {
  return impl_->file->keep_room(bytes);
}

Result<void> CaptureWriter::finish() {
  auto& w = *impl_;
  if (auto done = flush(); !done) return done;
  const layout::Header trailer{.kind = layout::Kind::trailer,
                               .capture_id = w.capture_id,
                               .number = w.blocks.size(),
                               .first_record = w.records,
                               .first_time_ns = w.times.first_ns,
                               .last_time_ns = w.times.last_ns,
                               .checksum = XXH3_64bits_digest(w.chain.get())};
  const auto bytes = layout::encode(trailer);
  const auto table = layout::seek_table(w.blocks, w.blocks.size());
  uint8_t* const end = w.file->room(bytes.size() + table.size());
  std::memcpy(end, bytes.data(), bytes.size());
  std::memcpy(end + bytes.size(), table.data(), table.size());
  if (auto done = w.file->commit(bytes.size() + table.size()); !done) return w.failed(done.error());
  if (auto done = w.file->close(); !done) return w.failed(done.error());
  w.finished = true;
  return {};
}

void CaptureWriter::set_compression_level(int level) {
  impl_->set_level(level);
}

uint64_t CaptureWriter::bytes_written() const {
  return impl_->file->size();
}

std::size_t CaptureWriter::block_bytes_pending() const {
  return impl_->pending_records == 0 ? 0 : impl_->open_bytes();
}

bool CaptureWriter::flushed() const {
  return impl_->pending_records == 0 && impl_->file->in_file() == impl_->file->size();
}

std::size_t CaptureWriter::blocks_pending() const {
  impl_->note_in_file();
  return impl_->ends.size();
}

uint64_t CaptureWriter::blocks_written() const {
  return impl_->blocks.size();
}

int CaptureWriter::descriptor() const {
  return impl_->file->descriptor();
}

}  // namespace ztape
