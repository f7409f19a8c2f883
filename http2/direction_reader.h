// Splits the bytes of one direction into frames and decodes its header blocks. Two of them make a ConnectionReader:
// what one direction announces in SETTINGS binds the other.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "http2/connection_reader.h"
#include "http2/frame.h"
#include "http2/hpack_inflater.h"
#include "proto/capture.pb.h"

namespace ztape::http2 {

class DirectionReader {
 public:
  DirectionReader(Direction direction, ReaderSink& sink);

  void set_peer(DirectionReader* peer) { peer_ = peer; }

  void read(std::span<const uint8_t> bytes, int64_t time_ns);
  void gap(const std::string& reason);

  // The direction's first `bytes` bytes were HTTP/1 (an upgrade to h2c): it begins behind them.
  void begin_at(uint64_t bytes);
  // The peer announced these in another way than by a frame, and they hold already.
  void peer_announced_and_acknowledged(std::span<const Setting> settings);

  // All that there is to know of it, and the reverse: false where the state cannot be, and then the direction is
  // unreadable. A state that cannot be read, or not its headers, is told to the sink again. (direction_state.cc)
  void save(capture::ConnectionState::DirectionState& out) const;
  bool restore(const capture::ConnectionState::DirectionState& state, int64_t time_ns);
  [[nodiscard]] bool is_in(const capture::ConnectionState::DirectionState& state) const;

  [[nodiscard]] bool readable() const { return readable_; }
  [[nodiscard]] uint64_t offset() const { return offset_; }

 private:
  using Bytes = std::span<const uint8_t>;

  // Each takes what it needs from the front of `bytes`.
  void read_preface(Bytes& bytes);
  void read_frame_header(Bytes& bytes, int64_t time_ns);
  void read_payload(Bytes& bytes, int64_t time_ns);
  void read_data_payload(Bytes piece, int64_t time_ns);

  void begin_frame(int64_t time_ns);
  void end_frame(int64_t time_ns);
  // Content of a whole frame other than DATA, in payload_.
  void end_control_frame();
  void end_headers_frame();
  void end_settings_frame();
  void add_to_header_block(Bytes fragment);
  void end_header_block();
  // Without padding and priority fields; false: they do not fit, and the direction is unreadable now.
  bool strip_padding(Bytes& content);

  // Why a frame of this header must not be parsed; "" when it may.
  [[nodiscard]] std::string fault_of_frame_header() const;
  void become_unreadable(const std::string& reason);
  void lose_headers(const std::string& reason);

  std::string restore_frame(const capture::ConnectionState::DirectionState& state);
  std::string restore_headers(const capture::ConnectionState::DirectionState& state);

  // From the peer's SETTINGS.
  void peer_announced(std::span<const Setting> settings);

  Direction direction_;
  ReaderSink* sink_;
  DirectionReader* peer_ = nullptr;

  uint64_t offset_ = 0;
  int64_t now_ns_ = 0;  // of the read under way, or the last
  bool readable_ = true;
  bool headers_readable_ = true;
  std::string lost_reason_;        // why not
  std::size_t preface_bytes_ = 0;  // matched so far
  bool first_frame_ = true;

  std::array<uint8_t, kFrameHeaderBytes> frame_header_{};
  std::size_t frame_header_bytes_ = 0;
  bool in_payload_ = false;
  Frame frame_;
  uint32_t payload_left_ = 0;
  std::vector<uint8_t> payload_;  // of a frame that is parsed whole

  bool pad_length_read_ = false;  // of a padded DATA frame
  uint32_t data_left_ = 0;        // of a DATA frame, before its padding

  bool in_header_block_ = false;
  Frame block_frame_;
  std::vector<uint8_t> block_;
  HpackInflater inflater_;
  HeaderList fields_;  // of the last block

  std::vector<Setting> announced_;                 // in force, in the order of their first announcement
  uint32_t max_frame_bytes_ = 16384;               // the largest the peer has ever allowed
  std::deque<std::vector<uint32_t>> table_sizes_;  // a row for each SETTINGS of the peer not yet acknowledged here
};

}  // namespace ztape::http2
