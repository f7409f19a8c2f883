#include "net/tcp.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "net/tcp_impl.h"

namespace ztape::net {
namespace {

constexpr std::size_t kPiecesOnStack = 16;
constexpr int64_t kFirstDrainPauseNs = 1'000'000;
constexpr int64_t kLongestDrainPauseNs = 50'000'000;

TcpConnection::Impl* impl_of(void* uv_pointer) {
  return static_cast<TcpConnection::Impl*>(static_cast<LoopHandle*>(uv_pointer));
}

// A write that the kernel did not take at once: keeps its bytes until uv's callback.
struct QueuedWrite {
  uv_write_t request{};
  std::vector<Slice> slices;
};

// The error that waits in a socket, 0 if there is none; it is told once.
int take_socket_error(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : 0;
}

using NameFunction = int (*)(const uv_tcp_t*, sockaddr*, int*);

std::string text_of(const uv_tcp_t& handle, NameFunction name) {
  SocketAddress address;
  int size = sizeof(address.storage);
  if (name(&handle, reinterpret_cast<sockaddr*>(&address.storage), &size) != 0) return "";
  return address.text();
}

}  // namespace

std::string local_text(const uv_tcp_t& handle) {
  return text_of(handle, uv_tcp_getsockname);
}

std::string peer_text(const uv_tcp_t& handle) {
  return text_of(handle, uv_tcp_getpeername);
}

TcpConnection::Impl::Impl(Loop& owner) : loop(owner) {
  if (uv_tcp_init(loop.raw(), &handle) != 0) std::abort();  // it fails for unknown flags only
  handle.data = static_cast<LoopHandle*>(this);
}

void TcpConnection::Impl::close_handles() {
  if (std::exchange(closing, true)) return;
  handler = nullptr;
  drain_timer.reset();
  unread.reset();
  uv_close(reinterpret_cast<uv_handle_t*>(&handle), [](uv_handle_t* closed) { delete impl_of(closed->data); });
}

int TcpConnection::Impl::fd() const {
  uv_os_fd_t fd = -1;
  uv_fileno(reinterpret_cast<const uv_handle_t*>(&handle), &fd);
  return fd;
}

void TcpConnection::Impl::start_reading() {
  if (closing || reading || read_ended) return;
  reading = true;
  if (unread) return unread->timer.start(0, [this] { deliver_unread(); });
  start_uv_reading();
}

void TcpConnection::Impl::start_uv_reading() {
  const auto allocate = [](uv_handle_t* on, std::size_t, uv_buf_t* buffer) {
    auto* self = impl_of(on->data);
    self->loop.note_event();
    const auto room = self->loop.read_slabs().room();
    *buffer = uv_buf_init(reinterpret_cast<char*>(room.data()), static_cast<unsigned>(room.size()));
  };
  const auto on_read = [](uv_stream_t* on, ssize_t size, const uv_buf_t*) {
    if (size > 0) impl_of(on->data)->on_bytes(static_cast<std::size_t>(size));
    if (size < 0) impl_of(on->data)->on_read_end(static_cast<int>(size));
  };
  uv_read_start(stream(), allocate, on_read);
}

void TcpConnection::Impl::pause_reading() {
  if (closing || !reading) return;
  reading = false;
  if (unread) return unread->timer.cancel();
  uv_read_stop(stream());
}

// The handler may pause or close; the socket itself is read only where it did not.
void TcpConnection::Impl::deliver_unread() {
  const auto first = std::exchange(unread, nullptr);  // destroyed at the end: we are in its timer's callback
  start_uv_reading();
  if (handler) handler->on_read(std::move(first->bytes), first->time);
}

void TcpConnection::Impl::on_bytes(std::size_t size) {
  const auto now = monotonic_now();
  if (options.quickack_every_read) set_quickack(fd());
  auto slice = loop.read_slabs().take(size);
  if (handler) handler->on_read(std::move(slice), now);
}

void TcpConnection::Impl::on_read_end(int status) {
  const auto now = monotonic_now();
  reading = false;
  read_ended = true;
  uv_read_stop(stream());
  // A write may have taken the socket's error before the read could: then the read sees a mere end.
  if (!write_error.empty()) return tell_failure(write_error);
  if (status != UV_EOF) return tell_failure(uv_err_name(status));
  // Where a hang-up comes with the last bytes, uv takes it for an end and does not ask which (uv__stream_io()): a reset
  // whose bytes were not read yet, as after a pause, would pass for a FIN.
  const int error = take_socket_error(fd());
  if (error != 0 && error != EPIPE) return tell_failure(uv_err_name(-error));
  if (handler) handler->on_eof(now);
  if (error == EPIPE) tell_failure(uv_err_name(-error));  // a reset after a FIN; both have come
}

void TcpConnection::Impl::tell_failure(const std::string& system_error) {
  if (closing || std::exchange(failure_told, true)) return;
  if (handler) handler->on_error(std::string(system_error), monotonic_now());
}

void TcpConnection::Impl::write(std::span<const Slice> pieces) {
  if (closing || !write_error.empty()) return;
  std::array<uv_buf_t, kPiecesOnStack> on_stack;
  std::vector<uv_buf_t> on_heap;
  std::span<uv_buf_t> buffers;
  if (pieces.size() <= on_stack.size()) {
    buffers = std::span(on_stack).first(pieces.size());
  } else {
    on_heap.resize(pieces.size());
    buffers = on_heap;
  }
  std::size_t total = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    auto* first = reinterpret_cast<char*>(const_cast<uint8_t*>(pieces[i].data()));
    buffers[i] = uv_buf_init(first, static_cast<unsigned>(pieces[i].size()));
    total += pieces[i].size();
  }
  if (total == 0) return;

  std::size_t taken = 0;
  if (uv_stream_get_write_queue_size(stream()) == 0) {
    const int status = uv_try_write(stream(), buffers.data(), static_cast<unsigned>(buffers.size()));
    if (status >= 0) taken = static_cast<std::size_t>(status);
    // Told from uv's callback of the queued write below, never from inside write().
    if (status < 0 && status != UV_EAGAIN) write_error = uv_err_name(status);
  }
  if (taken == total) return;

  while (taken >= buffers.front().len && taken > 0) {
    taken -= buffers.front().len;
    buffers = buffers.subspan(1);
  }
  buffers.front().base += taken;
  buffers.front().len -= taken;
  auto queued = std::make_unique<QueuedWrite>();
  const auto kept = pieces.last(buffers.size());
  queued->slices.assign(kept.begin(), kept.end());
  queued->request.data = queued.get();
  const auto on_done = [](uv_write_t* request, int status) {
    auto* self = impl_of(request->handle->data);
    delete static_cast<QueuedWrite*>(request->data);
    self->on_written(status);
  };
  if (uv_write(&queued->request, stream(), buffers.data(), static_cast<unsigned>(buffers.size()), on_done) == 0) {
    [[maybe_unused]] const auto* kept_until_done = queued.release();
  }
}

void TcpConnection::Impl::on_written(int status) {
  if (closing) return;
  loop.note_event();
  if (status < 0 && write_error.empty()) write_error = uv_err_name(status);
  const bool drained = uv_stream_get_write_queue_size(stream()) == 0;
  if (draining) {
    if (drained || !write_error.empty()) continue_drain();
    return;
  }
  if (!write_error.empty() && read_ended) return tell_failure(write_error);
  if (drained && handler) handler->on_drained();
}

void TcpConnection::Impl::reset() {
  if (closing) return;
  set_reset_on_close(fd());
  close_handles();
}

void TcpConnection::Impl::start_drain(bool reset_at_end) {
  if (closing) return;
  handler = nullptr;
  pause_reading();
  draining = true;
  reset_when_drained = reset_at_end;
  drain_progress = monotonic_now();
  continue_drain();
}

void TcpConnection::Impl::continue_drain() {
  if (closing) return;
  const auto now = monotonic_now();
  const std::size_t queued = uv_stream_get_write_queue_size(stream());
  const std::size_t left = queued + unacknowledged_bytes(fd());
  if (left != drain_left) {
    drain_left = left;
    drain_progress = now;
  }
  const bool patient = now - drain_progress <= kResetPatienceNs || (queued > 0 && !reset_when_drained);
  if (left == 0 || !write_error.empty() || !patient) {
    if (reset_when_drained) return reset();
    return close_handles();
  }
  drain_pause_ns = std::clamp(drain_pause_ns * 2, kFirstDrainPauseNs, kLongestDrainPauseNs);
  if (!drain_timer) drain_timer = std::make_unique<Timer>(loop);
  drain_timer->start(drain_pause_ns, [this] { continue_drain(); });
}

TcpConnection::TcpConnection(Impl* impl) : impl_(impl) {}

TcpConnection::~TcpConnection() {
  if (impl_) impl_->close_handles();
}

void TcpConnection::set_handler(Handler* handler) {
  if (impl_) impl_->handler = handler;
}

void TcpConnection::start_reading() {
  if (impl_) impl_->start_reading();
}

void TcpConnection::pause_reading() {
  if (impl_) impl_->pause_reading();
}

void TcpConnection::unread(Slice bytes, MonotonicTime time) {
  if (!impl_ || bytes.empty()) return;
  assert(!impl_->reading && !impl_->unread);
  impl_->unread = std::make_unique<Impl::Unread>(impl_->loop);
  impl_->unread->bytes = std::move(bytes);
  impl_->unread->time = time;
}

void TcpConnection::write(std::span<const Slice> pieces) {
  if (impl_) impl_->write(pieces);
}

std::size_t TcpConnection::queued_bytes() const {
  return impl_ ? uv_stream_get_write_queue_size(impl_->stream()) : 0;
}

void TcpConnection::half_close() {
  if (!impl_) return;
  auto* request = new uv_shutdown_t{};
  const auto on_done = [](uv_shutdown_t* done, int) { delete done; };
  if (uv_shutdown(request, impl_->stream(), on_done) != 0) delete request;  // shut down or not connected any more
}

void TcpConnection::close() {
  if (impl_) std::exchange(impl_, nullptr)->close_handles();
}

void TcpConnection::reset() {
  if (impl_) std::exchange(impl_, nullptr)->reset();
}

void TcpConnection::start_drain(bool reset_at_end) {
  if (impl_) std::exchange(impl_, nullptr)->start_drain(reset_at_end);
}

Result<void> TcpConnection::set_options(const SocketOptions& options) {
  if (impl_) impl_->options = options;
  return set_nodelay(fd(), options.nodelay);
}

std::optional<TcpInfo> TcpConnection::tcp_info() const {
  return read_tcp_info(fd());
}

std::string TcpConnection::congestion_control() const {
  return read_congestion_control(fd());
}

std::string TcpConnection::local_text() const {
  return impl_ ? net::local_text(impl_->handle) : "";
}

std::string TcpConnection::peer_text() const {
  if (!impl_) return "";
  return impl_->accepted_from.empty() ? net::peer_text(impl_->handle) : impl_->accepted_from;
}

int TcpConnection::fd() const {
  return impl_ ? impl_->fd() : -1;
}

Loop& TcpConnection::loop() const {
  return impl_->loop;
}

}  // namespace ztape::net
