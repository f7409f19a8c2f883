#include "http2/connection_reader.h"

#include <algorithm>
#include <optional>

#include "http2/direction_reader.h"
#include "http2/first_bytes.h"
#include "http2/upgrade_watch.h"

namespace ztape::http2 {

struct ConnectionReader::Impl {
  explicit Impl(ReaderSink& with)
      : sink(with),
        readers{DirectionReader(Direction::client_to_server, with),
                DirectionReader(Direction::server_to_client, with)} {
    readers[0].set_peer(&readers[1]);
    readers[1].set_peer(&readers[0]);
  }

  void read(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns) {
    if (watch) return watched(direction, bytes, time_ns);
    if (direction == Direction::client_to_server && preface_left() > 0 && begins_otherwise(bytes)) {
      preface_seen = kClientPreface.size();
      if (auto first = std::string(kClientPreface.substr(0, readers[0].offset())); may_be_http1(first, bytes)) {
        watch = std::make_unique<UpgradeWatch>();
        seen_before_watch = first.size();
        if (!first.empty())
          watch->read(direction, {reinterpret_cast<const uint8_t*>(first.data()), first.size()}, time_ns);
        return watched(direction, bytes, time_ns);
      }
    }
    readers[index(direction)].read(bytes, time_ns);
  }

  [[nodiscard]] std::size_t preface_left() const { return kClientPreface.size() - preface_seen; }

  // False: the bytes go on with the preface.
  bool begins_otherwise(std::span<const uint8_t> bytes) {
    const auto expected = kClientPreface.substr(preface_seen, bytes.size());
    const bool otherwise =
        !std::ranges::equal(expected, bytes.first(expected.size()), {}, [](char c) { return static_cast<uint8_t>(c); });
    if (!otherwise) preface_seen += expected.size();
    return otherwise;
  }

  static bool may_be_http1(std::string_view first, std::span<const uint8_t> bytes) {
    constexpr std::size_t kEnough = 32;
    std::string text(first);
    text.append(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kEnough));
    const auto wire = wire_of(text);
    return wire == Wire::http1 || wire == Wire::undecided;
  }

  void watched(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns) {
    if (watch->read(direction, bytes, time_ns) != UpgradeWatch::State::watching) end_watch();
  }

  // What was held back goes where it belongs. The first of it has been read already, as part of the preface.
  void end_watch() {
    const auto watched = std::move(watch);
    std::size_t left_out[2] = {seen_before_watch, 0};
    if (watched->state() == UpgradeWatch::State::upgraded) {
      for (const auto direction : kDirections) {
        left_out[index(direction)] = watched->http1_bytes(direction);
        readers[index(direction)].begin_at(watched->http1_bytes(direction));
      }
      readers[1].peer_announced_and_acknowledged(watched->request().settings);
      begin_stream_1(watched->request());
    }
    for (const auto& held : watched->held()) {
      std::span<const uint8_t> bytes(held.bytes);
      auto& left = left_out[index(held.direction)];
      const auto skipped = std::min(bytes.size(), left);
      left -= skipped;
      if (bytes = bytes.subspan(skipped); !bytes.empty()) readers[index(held.direction)].read(bytes, held.time_ns);
    }
  }

  void begin_stream_1(const UpgradeWatch::Request& request) {
    Frame frame{.direction = Direction::client_to_server,
                .stream = 1,
                .type = kHeaders,
                .flags = kEndHeaders | kEndStream,
                .length = 0,
                .offset = 0,
                .first_byte_ns = request.head_ns,
                .last_byte_ns = request.head_ns};
    sink.on_headers(frame, request.fields, true, true);
    if (request.body.empty()) return;
    frame.type = kData;
    sink.on_data(frame, request.body, request.end_ns);
  }

  ReaderSink& sink;
  DirectionReader readers[2];
  std::size_t preface_seen = 0;         // of the client's; all of it also once its bytes are something else
  std::unique_ptr<UpgradeWatch> watch;  // while the connection may still change from HTTP/1 to HTTP/2
  std::size_t seen_before_watch = 0;
};

ConnectionReader::ConnectionReader(ReaderSink& sink) : impl_(std::make_unique<Impl>(sink)) {}
ConnectionReader::~ConnectionReader() = default;
ConnectionReader::ConnectionReader(ConnectionReader&&) noexcept = default;

void ConnectionReader::read(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns) {
  impl_->read(direction, bytes, time_ns);
}

void ConnectionReader::gap(Direction direction, const std::string& reason) {
  if (impl_->watch) impl_->end_watch();
  impl_->readers[index(direction)].gap(reason);
}

void ConnectionReader::end(Direction /*direction*/) {
  if (impl_->watch) impl_->end_watch();
}

void ConnectionReader::save(capture::ConnectionState& out) const {
  impl_->readers[0].save(*out.mutable_client_to_server());
  impl_->readers[1].save(*out.mutable_server_to_client());
  if (!impl_->watch) return;
  for (const auto& held : impl_->watch->held()) {
    auto& added = *out.add_held();
    added.set_direction(static_cast<capture::Direction>(held.direction));
    added.set_time_ns(held.time_ns);
    added.set_bytes(held.bytes.data(), held.bytes.size());
  }
  out.mutable_client_to_server()->set_offset(offset(Direction::client_to_server));
  out.mutable_server_to_client()->set_offset(offset(Direction::server_to_client));
}

void ConnectionReader::restore(const capture::ConnectionState& state) {
  if (state.held_size() > 0) {
    impl_ = std::make_unique<Impl>(impl_->sink);
    for (const auto& held : state.held()) {
      const auto& bytes = held.bytes();
      impl_->read(
          held.direction() == capture::SERVER_TO_CLIENT ? Direction::server_to_client : Direction::client_to_server,
          {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, held.time_ns());
    }
    return;
  }
  impl_->watch.reset();
  impl_->readers[0].restore(state.client_to_server(), state.time_ns());
  impl_->readers[1].restore(state.server_to_client(), state.time_ns());
  const auto& client = state.client_to_server();
  const bool in_preface = client.readable() && client.offset() + client.preface_bytes_left() == kClientPreface.size();
  impl_->preface_seen = in_preface ? client.offset() : kClientPreface.size();
}

bool ConnectionReader::is_in(const capture::ConnectionState& state) const {
  if (impl_->watch || state.held_size() > 0) {
    return offset(Direction::client_to_server) == state.client_to_server().offset() &&
           offset(Direction::server_to_client) == state.server_to_client().offset();
  }
  return impl_->readers[0].is_in(state.client_to_server()) && impl_->readers[1].is_in(state.server_to_client());
}

bool ConnectionReader::readable(Direction direction) const {
  return impl_->readers[index(direction)].readable();
}

uint64_t ConnectionReader::offset(Direction direction) const {
  const auto held = impl_->watch ? impl_->watch->held_bytes(direction) : 0;
  const auto twice = held > 0 && direction == Direction::client_to_server ? impl_->seen_before_watch : 0;
  return impl_->readers[index(direction)].offset() + held - twice;
}

}  // namespace ztape::http2
