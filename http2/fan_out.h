// Gives what a ConnectionReader finds to several sinks, one after another.
#pragma once

#include <initializer_list>
#include <vector>

#include "http2/connection_reader.h"

namespace ztape::http2 {

class FanOut final : public ReaderSink {
 public:
  // The sinks must outlive this.
  FanOut(std::initializer_list<ReaderSink*> sinks) : sinks_(sinks) {}

  void on_frame(const Frame& frame) override {
    for (auto* sink : sinks_) sink->on_frame(frame);
  }
  void on_headers(const Frame& frame, const HeaderList& fields, bool end_stream, bool readable) override {
    for (auto* sink : sinks_) sink->on_headers(frame, fields, end_stream, readable);
  }
  void on_data(const Frame& frame, std::span<const uint8_t> piece, int64_t time_ns) override {
    for (auto* sink : sinks_) sink->on_data(frame, piece, time_ns);
  }
  void on_rst_stream(const Frame& frame, uint32_t error_code) override {
    for (auto* sink : sinks_) sink->on_rst_stream(frame, error_code);
  }
  void on_settings(const Frame& frame, std::span<const Setting> settings) override {
    for (auto* sink : sinks_) sink->on_settings(frame, settings);
  }
  void on_window_update(const Frame& frame, uint32_t increment) override {
    for (auto* sink : sinks_) sink->on_window_update(frame, increment);
  }
  void on_goaway(const Frame& frame, uint32_t last_stream, uint32_t error_code,
                 std::span<const uint8_t> debug_bytes) override {
    for (auto* sink : sinks_) sink->on_goaway(frame, last_stream, error_code, debug_bytes);
  }
  void on_unreadable(const Unreadable& lost) override {
    for (auto* sink : sinks_) sink->on_unreadable(lost);
  }

 private:
  std::vector<ReaderSink*> sinks_;
};

}  // namespace ztape::http2
