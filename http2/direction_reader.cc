#include "http2/direction_reader.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace ztape::http2 {
namespace {

constexpr uint16_t kSettingsHeaderTableSize = 0x1;  // RFC 9113, section 6.5.2
constexpr uint16_t kSettingsMaxFrameSize = 0x5;
constexpr std::size_t kKeptBlockBytes = 4096;
constexpr std::size_t kKeptFields = 64;

uint32_t read_u32(const uint8_t* at) {
  return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 | static_cast<uint32_t>(at[2]) << 8 |
         at[3];
}

uint32_t read_u31(const uint8_t* at) {
  return read_u32(at) & 0x7fffffffU;
}

// The first line of what is not HTTP/2, for a person: at most 40 printable characters.
std::string beginning(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    if (text.size() >= 40 || byte == '\r' || byte == '\n') break;
    if (byte >= 0x20 && byte < 0x7f) {
      text += static_cast<char>(byte);
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
      text += escaped;
    }
  }
  return text;
}

// There are six that are known; a peer may announce unknown ones without end.
constexpr std::size_t kMaxSettings = 64;

void remember(std::vector<Setting>& settings, const Setting& setting) {
  const auto found = std::ranges::find(settings, setting.id, &Setting::id);
  if (found != settings.end()) {
    found->value = setting.value;
  } else if (settings.size() < kMaxSettings) {
    settings.push_back(setting);
  }
}

}  // namespace

DirectionReader::DirectionReader(Direction direction, ReaderSink& sink) : direction_(direction), sink_(&sink) {
  if (direction == Direction::server_to_client) preface_bytes_ = kClientPreface.size();
}

void DirectionReader::read(std::span<const uint8_t> bytes, int64_t time_ns) {
  now_ns_ = time_ns;
  while (readable_ && !bytes.empty()) {
    if (preface_bytes_ < kClientPreface.size()) {
      read_preface(bytes);
    } else if (!in_payload_) {
      read_frame_header(bytes, time_ns);
    } else {
      read_payload(bytes, time_ns);
    }
  }
  offset_ += bytes.size();  // what is left when the direction is unreadable
}

void DirectionReader::gap(const std::string& reason) {
  if (readable_) become_unreadable(reason);
}

void DirectionReader::begin_at(uint64_t bytes) {
  offset_ = bytes;
  if (direction_ == Direction::client_to_server) preface_bytes_ = 0;
}

void DirectionReader::peer_announced_and_acknowledged(std::span<const Setting> settings) {
  peer_announced(settings);
  for (const uint32_t bytes : table_sizes_.front()) inflater_.set_table_size(bytes);
  table_sizes_.pop_front();
}

void DirectionReader::read_preface(Bytes& bytes) {
  const auto expected = kClientPreface.substr(preface_bytes_);
  const std::size_t count = std::min(bytes.size(), expected.size());
  if (std::memcmp(bytes.data(), expected.data(), count) != 0) {
    std::string seen(kClientPreface.substr(0, preface_bytes_));
    const Bytes matched(reinterpret_cast<const uint8_t*>(seen.data()), seen.size());
    become_unreadable("not HTTP/2: begins with \"" + beginning(matched) + beginning(bytes) + "\"");
    return;
  }
  preface_bytes_ += count;
  offset_ += count;
  bytes = bytes.subspan(count);
}

void DirectionReader::read_frame_header(Bytes& bytes, int64_t time_ns) {
  if (frame_header_bytes_ == 0) frame_.first_byte_ns = time_ns;
  const std::size_t count = std::min<std::size_t>(bytes.size(), kFrameHeaderBytes - frame_header_bytes_);
  std::memcpy(frame_header_.data() + frame_header_bytes_, bytes.data(), count);
  frame_header_bytes_ += count;
  offset_ += count;
  bytes = bytes.subspan(count);
  if (frame_header_bytes_ == kFrameHeaderBytes) begin_frame(time_ns);
}

void DirectionReader::begin_frame(int64_t time_ns) {
  frame_header_bytes_ = 0;
  frame_.direction = direction_;
  frame_.length =
      static_cast<uint32_t>(frame_header_[0]) << 16 | static_cast<uint32_t>(frame_header_[1]) << 8 | frame_header_[2];
  frame_.type = frame_header_[3];
  frame_.flags = frame_header_[4];
  frame_.stream = read_u31(frame_header_.data() + 5);
  frame_.offset = offset_ - kFrameHeaderBytes;
  frame_.last_byte_ns = time_ns;
  if (auto fault = fault_of_frame_header(); !fault.empty()) {
    // A peer that speaks HTTP/1.1 shows itself here: its first bytes are taken for a frame header.
    if (first_frame_) fault += ", begins with \"" + beginning(frame_header_) + "\"";
    offset_ = frame_.offset;
    become_unreadable(fault);
    offset_ += kFrameHeaderBytes;
    return;
  }
  first_frame_ = false;
  payload_left_ = frame_.length;
  payload_.clear();
  pad_length_read_ = !(frame_.flags & kPadded);
  data_left_ = frame_.length;
  in_payload_ = true;
  if (payload_left_ == 0) end_frame(time_ns);
}

std::string DirectionReader::fault_of_frame_header() const {
  const Frame& frame = frame_;
  if (first_frame_ && (frame.type != kSettings || frame.stream != 0 || (frame.flags & kAck))) {
    return "not HTTP/2: the first frame is not SETTINGS";
  }
  const bool peer_is_known = peer_->readable();
  if (peer_is_known && frame.length > max_frame_bytes_) {
    return frame_type_name(frame.type) + " of " + std::to_string(frame.length) +
           " bytes is larger than the peer allows (" + std::to_string(max_frame_bytes_) + ")";
  }
  if (in_header_block_ && (frame.type != kContinuation || frame.stream != block_frame_.stream)) {
    return frame_type_name(frame.type) + " inside the header block of stream " + std::to_string(block_frame_.stream);
  }
  const auto name = frame_type_name(frame.type);
  const auto wrong_length = [&] { return name + " of " + std::to_string(frame.length) + " bytes"; };
  switch (frame.type) {
    case kData:
    case kHeaders:
    case kPushPromise: return frame.stream == 0 ? name + " on stream 0" : "";
    case kContinuation: return in_header_block_ ? "" : "CONTINUATION outside a header block";
    case kRstStream: return frame.stream == 0 ? name + " on stream 0" : frame.length != 4 ? wrong_length() : "";
    case kWindowUpdate: return frame.length != 4 ? wrong_length() : "";
    case kSettings:
      if (frame.stream != 0) return "SETTINGS on stream " + std::to_string(frame.stream);
      return frame.length % 6 != 0 || ((frame.flags & kAck) && frame.length != 0) ? wrong_length() : "";
    case kPing: return frame.stream != 0 ? "PING on a stream" : frame.length != 8 ? wrong_length() : "";
    case kGoaway: return frame.stream != 0 ? "GOAWAY on a stream" : frame.length < 8 ? wrong_length() : "";
    default: return "";
  }
}

void DirectionReader::read_payload(Bytes& bytes, int64_t time_ns) {
  const std::size_t count = std::min<std::size_t>(bytes.size(), payload_left_);
  const Bytes piece = bytes.first(count);
  payload_left_ -= static_cast<uint32_t>(count);
  offset_ += count;
  bytes = bytes.subspan(count);
  if (frame_.type == kData) {
    read_data_payload(piece, time_ns);
  } else if (is_parsed_whole(frame_.type)) {
    payload_.insert(payload_.end(), piece.begin(), piece.end());
  }
  if (readable_ && payload_left_ == 0) end_frame(time_ns);
}

void DirectionReader::read_data_payload(Bytes piece, int64_t time_ns) {
  if (!pad_length_read_) {
    pad_length_read_ = true;
    const uint32_t padding = piece.front();
    piece = piece.subspan(1);
    data_left_ -= 1;
    if (padding > data_left_) {
      become_unreadable("DATA with more padding than it is long");
      return;
    }
    data_left_ -= padding;
  }
  const Bytes content = piece.first(std::min<std::size_t>(piece.size(), data_left_));
  data_left_ -= static_cast<uint32_t>(content.size());
  if (!content.empty()) sink_->on_data(frame_, content, time_ns);
}

void DirectionReader::end_frame(int64_t time_ns) {
  in_payload_ = false;
  frame_.last_byte_ns = time_ns;
  if (frame_.type == kData && !pad_length_read_) {
    become_unreadable("DATA has the PADDED flag and no padding");
    return;
  }
  end_control_frame();
  if (readable_) sink_->on_frame(frame_);
}

void DirectionReader::end_control_frame() {
  const uint8_t* const content = payload_.data();
  switch (frame_.type) {
    case kHeaders:
    case kPushPromise: end_headers_frame(); break;
    case kContinuation:
      add_to_header_block(payload_);
      if (frame_.flags & kEndHeaders) end_header_block();
      break;
    case kRstStream: sink_->on_rst_stream(frame_, read_u32(content)); break;
    case kSettings: end_settings_frame(); break;
    case kWindowUpdate: sink_->on_window_update(frame_, read_u31(content)); break;
    case kGoaway: sink_->on_goaway(frame_, read_u31(content), read_u32(content + 4), Bytes(payload_).subspan(8)); break;
    default: break;
  }
}

bool DirectionReader::strip_padding(Bytes& content) {
  std::size_t padding = 0;
  if (frame_.flags & kPadded) {
    if (content.empty()) return false;
    padding = content.front();
    content = content.subspan(1);
  }
  std::size_t fields = 0;
  if (frame_.type == kHeaders && (frame_.flags & kPriorityFlag)) fields = 5;
  if (frame_.type == kPushPromise) fields = 4;
  if (fields + padding > content.size()) return false;
  content = content.subspan(fields, content.size() - fields - padding);
  return true;
}

void DirectionReader::end_headers_frame() {
  Bytes fragment(payload_);
  if (!strip_padding(fragment)) {
    become_unreadable(frame_type_name(frame_.type) + " whose padding and priority do not fit into it");
    return;
  }
  in_header_block_ = true;
  block_frame_ = frame_;
  block_.clear();
  add_to_header_block(fragment);
  if (frame_.flags & kEndHeaders) end_header_block();
}

void DirectionReader::add_to_header_block(Bytes fragment) {
  if (!headers_readable_) return;
  if (block_.size() + fragment.size() > kMaxHeaderBlockBytes) {
    lose_headers("a header block of more than 256 KiB");
    return;
  }
  block_.insert(block_.end(), fragment.begin(), fragment.end());
}

void DirectionReader::end_header_block() {
  in_header_block_ = false;
  block_frame_.last_byte_ns = frame_.last_byte_ns;
  if (headers_readable_) {
    if (const auto inflated = inflater_.inflate(block_, fields_); !inflated) lose_headers(inflated.error().message);
  }
  if (!headers_readable_) HeaderList().swap(fields_);
  const bool end_stream = block_frame_.type == kHeaders && (block_frame_.flags & kEndStream);
  sink_->on_headers(block_frame_, fields_, end_stream, headers_readable_);
  // A large one is not kept for all the time the connection is idle.
  if (block_.size() > kKeptBlockBytes || fields_.size() > kKeptFields) HeaderList().swap(fields_);
  if (block_.capacity() > kKeptBlockBytes) std::vector<uint8_t>().swap(block_);
}

void DirectionReader::end_settings_frame() {
  if (frame_.flags & kAck) {
    // What the peer announced holds for our encoder from here on (RFC 9113, section 6.5.3; RFC 7541, section 4.2).
    if (table_sizes_.empty()) return;
    for (const uint32_t bytes : table_sizes_.front()) inflater_.set_table_size(bytes);
    table_sizes_.pop_front();
    return;
  }
  const auto settings = read_settings(payload_);
  for (const auto& setting : settings) remember(announced_, setting);
  peer_->peer_announced(settings);
  sink_->on_settings(frame_, settings);
}

void DirectionReader::peer_announced(std::span<const Setting> settings) {
  std::vector<uint32_t> sizes;
  for (const auto& setting : settings) {
    if (setting.id == kSettingsHeaderTableSize) sizes.push_back(setting.value);
    if (setting.id == kSettingsMaxFrameSize) max_frame_bytes_ = std::max(max_frame_bytes_, setting.value);
  }
  // A peer that never acknowledges must not make the list grow without end.
  constexpr std::size_t kMaxUnacknowledged = 1000;
  if (table_sizes_.size() < kMaxUnacknowledged) {
    table_sizes_.push_back(std::move(sizes));
  } else if (headers_readable_) {
    lose_headers("more than 1000 SETTINGS were never acknowledged");
  }
}

void DirectionReader::become_unreadable(const std::string& reason) {
  readable_ = false;
  lost_reason_ = reason;
  payload_ = {};
  block_ = {};
  sink_->on_unreadable({direction_, offset_, now_ns_, reason, false});
}

void DirectionReader::lose_headers(const std::string& reason) {
  headers_readable_ = false;
  lost_reason_ = reason;
  block_ = {};
  sink_->on_unreadable({direction_, block_frame_.offset, now_ns_, reason, true});
}

}  // namespace ztape::http2
