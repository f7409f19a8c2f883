// DirectionReader to and from the ConnectionState record of a capture (proto/capture.proto). What comes from a file is
// not trusted: a state that no bytes lead to is refused.
#include <algorithm>
#include <cstring>
#include <utility>

#include "http2/direction_reader.h"

namespace ztape::http2 {
namespace {

constexpr uint32_t kLargestFrameBytes = (1u << 24) - 1;  // RFC 9113, section 4.2
constexpr int kMaxUnacknowledged = 1000;

using State = capture::ConnectionState::DirectionState;

void save_frame(const Frame& frame, capture::Frame& out) {
  out.set_offset(frame.offset);
  out.set_stream(frame.stream);
  out.set_type(frame.type);
  out.set_flags(frame.flags);
  out.set_length(frame.length);
  out.set_first_byte_ns(frame.first_byte_ns);
}

Frame frame_of(Direction direction, const capture::Frame& in) {
  return {.direction = direction,
          .stream = in.stream() & 0x7fffffffU,
          .type = static_cast<uint8_t>(in.type()),
          .flags = static_cast<uint8_t>(in.flags()),
          .length = in.length(),
          .offset = in.offset(),
          .first_byte_ns = in.first_byte_ns()};
}

void assign(std::vector<uint8_t>& bytes, const std::string& from) {
  bytes.assign(from.begin(), from.end());
}

}  // namespace

void DirectionReader::save(State& out) const {
  out.set_offset(offset_);
  out.set_readable(readable_);
  out.set_unreadable_reason(lost_reason_);
  for (const auto& setting : announced_) {
    auto& added = *out.add_settings();
    added.set_id(setting.id);
    added.set_value(setting.value);
  }
  out.set_hpack_known(readable_ && headers_readable_);
  if (!readable_) return;
  out.set_preface_bytes_left(static_cast<uint32_t>(kClientPreface.size() - preface_bytes_));
  out.set_frames_begun(!first_frame_);
  out.set_largest_frame_bytes(max_frame_bytes_);
  for (const auto& row : table_sizes_) {
    auto& sizes = *out.add_hpack_unacknowledged();
    for (const uint32_t bytes : row) sizes.add_bytes(bytes);
  }
  if (in_payload_) {
    save_frame(frame_, *out.mutable_frame());
    out.set_frame_bytes_left(payload_left_);
    out.set_frame_begun(payload_.data(), payload_.size());
    if (frame_.type == kData && pad_length_read_) out.set_frame_padding_left(payload_left_ - data_left_);
  } else if (frame_header_bytes_ > 0) {
    out.set_frame_begun(frame_header_.data(), frame_header_bytes_);
    out.set_frame_begun_ns(frame_.first_byte_ns);
  }
  if (in_header_block_) {
    save_frame(block_frame_, *out.mutable_header_block_frame());
    out.set_header_block(block_.data(), block_.size());
  }
  if (!headers_readable_) return;
  const auto hpack = inflater_.state();
  for (const auto& entry : hpack.table) {
    auto& added = *out.add_hpack_dynamic_table();
    added.set_name(entry.name);
    added.set_value(entry.value);
  }
  out.set_hpack_table_size(hpack.table_size);
  out.set_hpack_table_limit(hpack.table_limit);
  if (hpack.size_due) out.set_hpack_size_due(*hpack.size_due);
}

bool DirectionReader::restore(const State& state, int64_t time_ns) {
  DirectionReader fresh(direction_, *sink_);
  fresh.peer_ = peer_;
  *this = std::move(fresh);
  now_ns_ = time_ns;
  offset_ = state.offset();
  for (const auto& setting : state.settings()) {
    announced_.push_back({static_cast<uint16_t>(setting.id()), setting.value()});
  }
  if (!state.readable()) {
    become_unreadable(state.unreadable_reason());
    return true;
  }
  std::string fault = restore_frame(state);
  if (fault.empty()) fault = restore_headers(state);
  if (!fault.empty()) become_unreadable("its state in the capture cannot be: " + fault);
  return fault.empty();
}

// Both return what is wrong with it, or "".
std::string DirectionReader::restore_frame(const State& state) {
  const std::size_t preface_left = state.preface_bytes_left();
  if (preface_left > (direction_ == Direction::client_to_server ? kClientPreface.size() : 0)) return "its preface";
  preface_bytes_ = kClientPreface.size() - preface_left;
  first_frame_ = !state.frames_begun();
  if (state.largest_frame_bytes() > kLargestFrameBytes) return "its frames are too large";
  max_frame_bytes_ = std::max(max_frame_bytes_, state.largest_frame_bytes());
  if (state.has_header_block_frame()) {
    in_header_block_ = true;
    block_frame_ = frame_of(direction_, state.header_block_frame());
    if (block_frame_.type != kHeaders && block_frame_.type != kPushPromise) return "its header block";
    if (state.header_block().size() > kMaxHeaderBlockBytes) return "a header block of more than 256 KiB";
    assign(block_, state.header_block());
  }
  const auto& begun = state.frame_begun();
  if (!state.has_frame()) {
    if (begun.size() >= kFrameHeaderBytes) return "its frame header";
    if (!begun.empty()) std::memcpy(frame_header_.data(), begun.data(), begun.size());
    frame_header_bytes_ = begun.size();
    frame_.first_byte_ns = state.frame_begun_ns();
    return "";
  }
  frame_ = frame_of(direction_, state.frame());
  if (first_frame_ || preface_left > 0) return "a frame before the first";
  if (frame_.length > kLargestFrameBytes) return "its frame is too large";
  // A frame may be larger than the peer allows where the peer cannot be read.
  const uint32_t allowed = std::exchange(max_frame_bytes_, kLargestFrameBytes);
  const auto fault = fault_of_frame_header();
  max_frame_bytes_ = allowed;
  if (!fault.empty()) return fault;
  payload_left_ = state.frame_bytes_left();
  if (payload_left_ == 0 || payload_left_ > frame_.length) return "the bytes left of its frame";
  in_payload_ = true;
  const bool whole = is_parsed_whole(frame_.type);
  if (begun.size() != (whole ? frame_.length - payload_left_ : 0)) return "the payload of its frame";
  assign(payload_, begun);
  pad_length_read_ = !(frame_.flags & kPadded) || payload_left_ < frame_.length;
  const uint32_t padding = state.frame_padding_left();
  if (padding > 0 && (frame_.type != kData || !pad_length_read_ || !(frame_.flags & kPadded))) return "its padding";
  if (padding > payload_left_) return "its padding";
  data_left_ = payload_left_ - padding;
  return "";
}

std::string DirectionReader::restore_headers(const State& state) {
  if (state.hpack_unacknowledged_size() > kMaxUnacknowledged) return "its unacknowledged SETTINGS";
  for (const auto& row : state.hpack_unacknowledged()) {
    table_sizes_.emplace_back(row.bytes().begin(), row.bytes().end());
  }
  if (!state.hpack_known()) {
    headers_readable_ = false;
    lost_reason_ = state.unreadable_reason();
    sink_->on_unreadable({direction_, offset_, now_ns_, lost_reason_, true});
    return "";
  }
  HpackState hpack;
  hpack.table_size = state.hpack_table_size();
  hpack.table_limit = state.hpack_table_limit();
  for (const auto& entry : state.hpack_dynamic_table()) hpack.table.push_back({entry.name(), entry.value()});
  if (state.has_hpack_size_due()) hpack.size_due = state.hpack_size_due();
  const auto done = inflater_.restore(hpack);
  return done ? "" : done.error().message;
}

bool DirectionReader::is_in(const State& state) const {
  return offset_ == state.offset() && readable_ == state.readable() &&
         (readable_ && headers_readable_) == state.hpack_known();
}

}  // namespace ztape::http2
