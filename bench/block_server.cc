// The indexer of the bench: h2c, gRPC, one thread, and no work but to send. So the relay under test meets a server that
// is quicker than itself, and answers that no compressor has seen before.
//
//   block_server CHAIN [--framing tonic|go] [--listen IPV4:PORT]
//
// GetBlock: the next block. GetBlockRange: the whole chain, or with the header `x-parts: N` the next N-th of it.
// Sized: `x-messages: N` (1) messages of `x-bytes: N` (1000). The first line on stdout names the port.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bench/block_answers.h"

namespace ztape::bench {
namespace {

constexpr std::size_t kOutputBytes = 64 * 1024;  // gathered before a write; more does not fit the nearest caches
constexpr uint32_t kStreams = 2000;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "block_server: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

nghttp2_nv field(std::string_view name, std::string_view value) {
  // nghttp2 copies both, and takes no const.
  return {.name = reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          .value = reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())),
          .namelen = name.size(),
          .valuelen = value.size(),
          .flags = NGHTTP2_NV_FLAG_NONE};
}

struct Stream {
  std::string path;
  std::size_t bytes = 1000;
  std::size_t messages = 1;
  std::size_t parts = 1;
  Chain::Answer answer;
};

class Connection {
 public:
  Connection(int fd, Chain& chain) : fd_(fd), chain_(chain) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, &Connection::on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &Connection::on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &Connection::on_stream_close);
    nghttp2_session_server_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry streams{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kStreams};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &streams, 1);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    nghttp2_session_del(session_);
    close(fd_);
  }

  // False: it has ended.
  bool read() {
    std::array<uint8_t, 16384> bytes;
    const ssize_t count = ::read(fd_, bytes.data(), bytes.size());
    if (count < 0) return errno == EAGAIN;
    return count > 0 && nghttp2_session_mem_recv(session_, bytes.data(), static_cast<std::size_t>(count)) == count &&
           write();
  }

  bool write() {
    for (;;) {
      const uint8_t* piece = nullptr;
      while (sent_ == 0 && output_.size() < kOutputBytes) {  // what is under way goes first
        const ssize_t count = nghttp2_session_mem_send(session_, &piece);
        if (count < 0) return false;
        if (count == 0) break;
        output_.insert(output_.end(), piece, piece + count);
      }
      if (output_.size() == sent_) {
        return nghttp2_session_want_read(session_) != 0 || nghttp2_session_want_write(session_) != 0;
      }
      const ssize_t count = ::send(fd_, output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL);
      if (count < 0) return errno == EAGAIN;
      sent_ += static_cast<std::size_t>(count);
      if (sent_ == output_.size()) {
        output_.clear();
        sent_ = 0;
      } else {
        return true;  // the rest when the socket takes more
      }
    }
  }

  [[nodiscard]] bool waits_to_write() const { return output_.size() != sent_; }
  bool watched_for_writing = false;

 private:
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, std::size_t name_size,
                       const uint8_t* value, std::size_t value_size, uint8_t, void* self) {
    auto& stream = static_cast<Connection*>(self)->streams_[frame->hd.stream_id];
    const std::string_view key(reinterpret_cast<const char*>(name), name_size);
    const std::string_view text(reinterpret_cast<const char*>(value), value_size);
    const auto number = [&](std::size_t& into) { std::from_chars(text.data(), text.data() + text.size(), into); };
    if (key == ":path") stream.path = text;
    if (key == "x-bytes") number(stream.bytes);
    if (key == "x-messages") number(stream.messages);
    if (key == "x-parts") number(stream.parts);
    return 0;
  }

  static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* self) {
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    auto& connection = *static_cast<Connection*>(self);
    auto& stream = connection.streams_[frame->hd.stream_id];
    auto& chain = connection.chain_;
    if (stream.path.ends_with("/GetBlockRange")) {
      stream.answer = chain.next_part(std::max<std::size_t>(1, stream.parts));
    } else if (stream.path.ends_with("/Sized")) {
      stream.answer = chain.sized(std::max<std::size_t>(1, stream.bytes), stream.messages);
    } else {
      stream.answer = chain.next_block();
    }
    const std::array headers{field(":status", "200"), field("content-type", "application/grpc")};
    const nghttp2_data_provider provider{.source = {.ptr = &stream}, .read_callback = &Connection::fill};
    return nghttp2_submit_response(session, frame->hd.stream_id, headers.data(), headers.size(), &provider);
  }

  static ssize_t fill(nghttp2_session* session, int32_t id, uint8_t* payload, std::size_t size, uint32_t* flags,
                      nghttp2_data_source* source, void* self) {
    auto& answer = static_cast<Stream*>(source->ptr)->answer;
    const std::size_t count = static_cast<Connection*>(self)->chain_.fill(answer, {payload, size});
    if (answer.left == 0) {
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const nghttp2_nv trailer = field("grpc-status", "0");
      nghttp2_submit_trailer(session, id, &trailer, 1);
    }
    return static_cast<ssize_t>(count);
  }

  static int on_stream_close(nghttp2_session*, int32_t id, uint32_t, void* self) {
    static_cast<Connection*>(self)->streams_.erase(id);
    return 0;
  }

  int fd_;
  Chain& chain_;
  nghttp2_session* session_ = nullptr;
  std::unordered_map<int32_t, Stream> streams_;  // nodes stay where they are: nghttp2 holds their addresses
  std::vector<uint8_t> output_;
  std::size_t sent_ = 0;
};

int listen_on(const std::string& host, uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) fail("--listen takes IPV4:PORT");
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 4096) != 0) fail("listen");
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  std::printf("listening on port %u\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return fd;
}

[[noreturn]] void serve(int listener, Chain& chain) {
  const int events = epoll_create1(EPOLL_CLOEXEC);
  const auto watch = [&](int how, int fd, uint32_t what) {
    epoll_event event{.events = what, .data = {.fd = fd}};
    if (epoll_ctl(events, how, fd, &event) != 0) fail("epoll_ctl");
  };
  watch(EPOLL_CTL_ADD, listener, EPOLLIN);
  std::unordered_map<int, std::unique_ptr<Connection>> connections;
  std::array<epoll_event, 256> ready;
  for (;;) {
    const int count = epoll_wait(events, ready.data(), ready.size(), -1);
    for (int i = 0; i < count; ++i) {
      const auto& event = ready[static_cast<std::size_t>(i)];
      if (event.data.fd == listener) {
        const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) continue;
        const int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        connections[fd] = std::make_unique<Connection>(fd, chain);
        watch(EPOLL_CTL_ADD, fd, EPOLLIN);
        continue;
      }
      auto& connection = *connections.at(event.data.fd);
      bool lives = true;
      if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) lives = connection.read();
      if (lives && (event.events & EPOLLOUT) != 0) lives = connection.write();
      if (!lives) {
        connections.erase(event.data.fd);  // closing takes it out of epoll
      } else if (connection.waits_to_write() != connection.watched_for_writing) {
        connection.watched_for_writing = connection.waits_to_write();
        watch(EPOLL_CTL_MOD, event.data.fd, connection.watched_for_writing ? EPOLLIN | EPOLLOUT : EPOLLIN);
      }
    }
  }
}

int run(int argc, char** argv) {
  Framing framing = Framing::batches;
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  if (argc < 2 || argc % 2 != 0) {
    std::fprintf(stderr, "usage: block_server CHAIN [--framing tonic|go] [--listen IPV4:PORT]\n");
    return 2;
  }
  for (int i = 2; i < argc; i += 2) {
    const std::string_view option = argv[i];
    const std::string value = argv[i + 1];
    if (option == "--framing" && value == "go") framing = Framing::one_frame_a_message;
    if (option == "--listen") {
      const auto colon = value.find(':');
      host = value.substr(0, colon);
      if (colon != std::string::npos) port = static_cast<uint16_t>(std::atoi(value.c_str() + colon + 1));
    }
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  Chain chain(argv[1], framing);
  serve(listen_on(host, port), chain);
}

}  // namespace
}  // namespace ztape::bench

int main(int argc, char** argv) {
  return ztape::bench::run(argc, argv);
}
