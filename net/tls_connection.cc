#include "net/tls_connection.h"

#include <cassert>
#include <utility>

namespace ztape::net {
namespace {

// A client that has said hello and waits for its answer has nothing more to say.
constexpr std::size_t kMostInputBeforeAnswer = 64 * 1024;

}  // namespace

struct TlsConnection::Impl final : Connection::Handler, std::enable_shared_from_this<TlsConnection::Impl> {
  std::unique_ptr<TcpConnection> socket;  // nullptr: closed
  const std::string peer;                 // read at once: a socket that was reset knows it no more
  TlsEngine engine;
  Timer timer;  // of the handshake; afterwards for what is read later
  std::unique_ptr<Timer> answer_timer;
  int64_t timeout_ns;
  OnHandshake on_handshake;
  OnHello on_hello;
  bool hello_told = false;
  bool answered = false;
  std::size_t input_before_answer = 0;
  bool anything_came = false;
  TlsFacts facts;
  Handler* handler = nullptr;
  bool open = false;     // the handshake is done
  bool reading = false;  // the owner wants to
  bool ended = false;    // the peer's direction; the socket is read on, so that a reset is seen
  bool truncated = false;
  bool write_ended = false;
  bool failure_told = false;
  MonotonicTime last_read;

  template <typename Handshake>
  Impl(std::unique_ptr<TcpConnection> on, std::shared_ptr<TlsContext> context, const Handshake& handshake,
       OnHandshake then, int64_t patience_ns)
      : socket(std::move(on)),
        peer(socket->peer_text()),
        engine(std::move(context), handshake),
        timer(socket->loop()),
        timeout_ns(patience_ns),
        on_handshake(std::move(then)) {}

  void begin();
  void start_timeout();
  void step();
  void finish_handshake(const std::string& failure);
  void flush();
  void resume();
  void deliver();
  void tell_failure(const std::string& system_error, MonotonicTime time);
  void end_socket(bool reset_at_end);

  // Of the socket.
  void on_read(Slice bytes, MonotonicTime time) override;
  void on_eof(MonotonicTime time) override;
  void on_error(const std::string& system_error, MonotonicTime time) override;
  void on_drained() override;
};

void TlsConnection::Impl::begin() {
  socket->set_handler(this);
  socket->start_reading();
  start_timeout();
}

void TlsConnection::Impl::start_timeout() {
  timer.start(timeout_ns, [this] {
    finish_handshake("no TLS handshake within " + std::to_string(timeout_ns / 1'000'000'000) + " s");
  });
}

void TlsConnection::Impl::step() {
  if (open || !on_handshake) return;
  const auto result = engine.step();
  flush();
  switch (result) {
    case TlsEngine::Step::needs_input: return;
    case TlsEngine::Step::waits_for_answer:
      if (std::exchange(hello_told, true)) return;
      timer.cancel();  // it is not the peer that is waited for
      if (on_hello) std::exchange(on_hello, nullptr)(engine.hello());
      return;
    case TlsEngine::Step::failed: return finish_handshake(engine.failure());
    case TlsEngine::Step::done: break;
  }
  facts = engine.facts();
  open = true;
  socket->pause_reading();
  finish_handshake("");
}

void TlsConnection::Impl::finish_handshake(const std::string& failure) {
  const auto alive = shared_from_this();
  timer.cancel();
  const auto then = std::exchange(on_handshake, nullptr);
  if (!then) return;
  if (failure.empty()) return then({});
  socket->pause_reading();
  then(std::unexpected(Error{.code = ErrorCode::protocol, .message = "TLS: " + failure, .subject = peer}));
}

void TlsConnection::Impl::flush() {
  const auto output = engine.take_output();
  if (socket && !output.empty()) socket->write(output);
}

// Reading begins, or begins again: first what has come already, never from inside start_reading().
void TlsConnection::Impl::resume() {
  if (!engine.has_input() || ended) return socket->start_reading();
  timer.start(0, [this] {
    const auto alive = shared_from_this();
    deliver();
    if (socket && (reading || ended)) socket->start_reading();
  });
}

// Gives the handler what can be read of the input. The handler may pause, close or destroy.
void TlsConnection::Impl::deliver() {
  while (socket && reading && !ended && !failure_told) {
    Slice plaintext;
    const auto result = engine.read(plaintext);
    flush();
    if (result == TlsEngine::Read::needs_input) return;
    if (result == TlsEngine::Read::failed) return tell_failure("TLS: " + engine.failure(), last_read);
    if (result == TlsEngine::Read::ended) {
      ended = true;
      if (handler) handler->on_eof(last_read);
    } else if (handler) {
      handler->on_read(std::move(plaintext), last_read);
    }
  }
}

void TlsConnection::Impl::tell_failure(const std::string& system_error, MonotonicTime time) {
  if (std::exchange(failure_told, true)) return;
  if (socket) socket->pause_reading();
  if (handler) handler->on_error(system_error, time);
}

void TlsConnection::Impl::on_read(Slice bytes, MonotonicTime time) {
  if (ended) return;  // RFC 8446, section 6.1: what comes after a close_notify is ignored
  const auto alive = shared_from_this();
  last_read = time;
  anything_came = true;
  if (hello_told && !answered) {
    input_before_answer += bytes.size();
    if (input_before_answer > kMostInputBeforeAnswer) socket->pause_reading();
  }
  engine.feed(std::move(bytes));
  if (open) return deliver();
  step();
}

void TlsConnection::Impl::on_eof(MonotonicTime time) {
  const auto alive = shared_from_this();
  if (!open) {
    return finish_handshake(anything_came ? "closed in the middle of the handshake" : "closed without a handshake");
  }
  if (std::exchange(ended, true)) return;
  truncated = true;
  if (handler) handler->on_eof(time);
}

void TlsConnection::Impl::on_error(const std::string& system_error, MonotonicTime time) {
  const auto alive = shared_from_this();
  if (!open) return finish_handshake(system_error + " in the handshake");
  tell_failure(system_error, time);
}

void TlsConnection::Impl::on_drained() {
  const auto alive = shared_from_this();
  if (open && handler) handler->on_drained();
}

void TlsConnection::Impl::end_socket(bool reset_at_end) {
  handler = nullptr;
  timer.cancel();
  answer_timer.reset();
  on_handshake = nullptr;
  on_hello = nullptr;
  if (!socket) return;
  if (!reset_at_end && open && !write_ended) {
    engine.close_notify();
    flush();
  }
  auto last = std::move(socket);
  last->set_handler(nullptr);
  if (reset_at_end) return Connection::reset_after_drain(std::move(last));
  Connection::close_after_drain(std::move(last));
}

TlsConnection::TlsConnection(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

std::unique_ptr<TlsConnection> TlsConnection::accept(std::unique_ptr<TcpConnection> socket,
                                                     std::shared_ptr<TlsContext> context,
                                                     const TlsServerHandshake& handshake, OnHandshake on_handshake,
                                                     OnHello on_hello, int64_t timeout_ns) {
  auto impl =
      std::make_shared<Impl>(std::move(socket), std::move(context), handshake, std::move(on_handshake), timeout_ns);
  impl->on_hello = std::move(on_hello);
  impl->begin();
  return std::unique_ptr<TlsConnection>(new TlsConnection(std::move(impl)));
}

std::unique_ptr<TlsConnection> TlsConnection::connect(std::unique_ptr<TcpConnection> socket,
                                                      std::shared_ptr<TlsContext> context,
                                                      const TlsClientHandshake& handshake, OnHandshake on_handshake,
                                                      int64_t timeout_ns) {
  auto impl =
      std::make_shared<Impl>(std::move(socket), std::move(context), handshake, std::move(on_handshake), timeout_ns);
  impl->begin();
  if (impl->engine.step() == TlsEngine::Step::failed) {  // before anything came: a matter of OpenSSL's configuration
    impl->timer.start(0, [raw = impl.get()] { raw->finish_handshake(raw->engine.failure()); });
  }
  impl->flush();
  return std::unique_ptr<TlsConnection>(new TlsConnection(std::move(impl)));
}

TlsConnection::~TlsConnection() {
  close();
}

void TlsConnection::answer(std::string alpn) {
  if (!impl_ || impl_->open || std::exchange(impl_->answered, true)) return;
  impl_->engine.answer(std::move(alpn));
  impl_->start_timeout();
  impl_->socket->pause_reading();  // nothing may go on before the timer's callback, which is where this one calls back
  impl_->answer_timer = std::make_unique<Timer>(impl_->socket->loop());
  impl_->answer_timer->start(0, [impl = impl_.get()] {
    const auto alive = impl->shared_from_this();
    impl->socket->start_reading();
    impl->step();
  });
}

void TlsConnection::set_handler(Handler* handler) {
  if (impl_) impl_->handler = handler;
}

void TlsConnection::start_reading() {
  if (!impl_ || !impl_->open || std::exchange(impl_->reading, true)) return;
  impl_->resume();
}

void TlsConnection::pause_reading() {
  if (!impl_ || !impl_->open || !std::exchange(impl_->reading, false)) return;
  impl_->timer.cancel();
  if (!impl_->ended) impl_->socket->pause_reading();
}

void TlsConnection::write(std::span<const Slice> pieces) {
  if (!impl_) return;
  assert(impl_->open);
  impl_->engine.write(pieces);
  impl_->flush();
}

std::size_t TlsConnection::queued_bytes() const {
  return impl_ ? impl_->socket->queued_bytes() : 0;
}

void TlsConnection::half_close() {
  if (!impl_ || std::exchange(impl_->write_ended, true)) return;
  impl_->engine.close_notify();
  impl_->flush();
  impl_->socket->half_close();
}

void TlsConnection::half_close_truncated() {
  if (!impl_ || std::exchange(impl_->write_ended, true)) return;
  impl_->socket->half_close();
}

void TlsConnection::close() {
  if (!impl_) return;
  const auto impl = std::exchange(impl_, nullptr);
  impl->handler = nullptr;
  impl->timer.cancel();
  impl->answer_timer.reset();
  impl->on_handshake = nullptr;
  impl->socket.reset();
}

void TlsConnection::reset() {
  if (!impl_) return;
  impl_->socket->reset();
  close();
}

void TlsConnection::start_drain(bool reset_at_end) {
  if (const auto impl = std::exchange(impl_, nullptr)) impl->end_socket(reset_at_end);
}

std::optional<TcpInfo> TlsConnection::tcp_info() const {
  return impl_ ? impl_->socket->tcp_info() : std::nullopt;
}

std::string TlsConnection::congestion_control() const {
  return impl_ ? impl_->socket->congestion_control() : "";
}

std::string TlsConnection::local_text() const {
  return impl_ ? impl_->socket->local_text() : "";
}

std::string TlsConnection::peer_text() const {
  return impl_ ? impl_->peer : "";
}

int TlsConnection::fd() const {
  return impl_ ? impl_->socket->fd() : -1;
}

const TlsFacts* TlsConnection::tls() const {
  return impl_ && impl_->open ? &impl_->facts : nullptr;
}

bool TlsConnection::truncated() const {
  return impl_ && impl_->truncated;
}

}  // namespace ztape::net
