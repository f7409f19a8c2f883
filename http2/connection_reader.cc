#include "http2/connection_reader.h"

#include "http2/direction_reader.h"

namespace ztape::http2 {

struct ConnectionReader::Impl {
  explicit Impl(ReaderSink& sink)
      : readers{DirectionReader(Direction::client_to_server, sink),
                DirectionReader(Direction::server_to_client, sink)} {
    readers[0].set_peer(&readers[1]);
    readers[1].set_peer(&readers[0]);
  }
  DirectionReader readers[2];
};

ConnectionReader::ConnectionReader(ReaderSink& sink) : impl_(std::make_unique<Impl>(sink)) {}
ConnectionReader::~ConnectionReader() = default;
ConnectionReader::ConnectionReader(ConnectionReader&&) noexcept = default;

void ConnectionReader::read(Direction direction, std::span<const uint8_t> bytes, int64_t time_ns) {
  impl_->readers[index(direction)].read(bytes, time_ns);
}

void ConnectionReader::gap(Direction direction, const std::string& reason) {
  impl_->readers[index(direction)].gap(reason);
}

bool ConnectionReader::readable(Direction direction) const {
  return impl_->readers[index(direction)].readable();
}

uint64_t ConnectionReader::offset(Direction direction) const {
  return impl_->readers[index(direction)].offset();
}

}  // namespace ztape::http2
