#include "net/tls_engine.h"

#include <openssl/x509v3.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string_view>
#include <utility>

#include "net/address.h"
#include "net/tls_failure.h"
#include "net/tls_openssl.h"

namespace ztape::net {
namespace {

constexpr std::size_t kLargestRecord = 16 * 1024;  // of plaintext (RFC 8446, section 5.1)
constexpr std::size_t kFirstBytes = 24;            // kept to name what is not TLS; as long as HTTP/2's preface

// A list of protocols as ALPN has it on the wire (RFC 7301, section 3.1). What does not fit there is left out.
std::string to_wire(const std::vector<std::string>& protocols) {
  std::string wire;
  for (const auto& name : protocols) {
    if (name.empty() || name.size() > 255) continue;
    wire += static_cast<char>(name.size());
    wire += name;
  }
  return wire;
}

std::vector<std::string> from_wire(const unsigned char* first, std::size_t size) {
  std::vector<std::string> protocols;
  for (std::size_t at = 0; at < size;) {
    const std::size_t length = first[at];
    if (length == 0 || at + 1 + length > size) break;
    protocols.emplace_back(reinterpret_cast<const char*>(first + at + 1), length);
    at += 1 + length;
  }
  return protocols;
}

}  // namespace

struct TlsEngine::Impl {
  std::shared_ptr<TlsContext> context;
  SslPointer ssl;
  bool server = false;
  std::deque<Slice> input;
  std::vector<Slice> output;
  std::size_t room_used = 0;  // of the room that the output is being written to
  std::string first_bytes;

  TlsServerHandshake as_server;
  TlsClientHandshake as_client;
  bool hello_seen = false;
  bool answered = false;
  std::string answer;  // what ALPN's callback points OpenSSL to
  TlsClientHello hello;

  std::vector<std::string> peer_names;  // whom the peer's certificate is for, where it did not verify

  bool established = false;
  bool write_ended = false;
  std::string failure;

  explicit Impl(std::shared_ptr<TlsContext> shared);

  // The two ways of OpenSSL's bytes: `input` and `output`.
  int read_input(char* to, std::size_t size);
  void write_output(const char* from, std::size_t size);
  void finish_output();

  void prepare_server();
  void prepare_client();
  int on_client_hello();
  int select_alpn(const unsigned char** out, unsigned char* out_size, const unsigned char* offered, unsigned size);
  void fail(int ssl_error);
};

namespace {

TlsEngine::Impl& impl_of(BIO* bio) {
  return *static_cast<TlsEngine::Impl*>(BIO_get_data(bio));
}

TlsEngine::Impl& impl_of(const SSL* ssl) {
  return *static_cast<TlsEngine::Impl*>(SSL_get_app_data(ssl));
}

// A BIO on the engine's own buffers: OpenSSL's memory BIO would copy everything once more, both ways.
const BIO_METHOD* engine_bio() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ztape engine");
    if (!made) std::abort();
    BIO_meth_set_read(made, [](BIO* bio, char* to, int size) {
      BIO_clear_retry_flags(bio);
      const int taken = size > 0 ? impl_of(bio).read_input(to, static_cast<std::size_t>(size)) : 0;
      if (taken > 0) return taken;
      BIO_set_retry_read(bio);
      return -1;
    });
    BIO_meth_set_write(made, [](BIO* bio, const char* from, int size) {
      BIO_clear_retry_flags(bio);
      if (size > 0) impl_of(bio).write_output(from, static_cast<std::size_t>(size));
      return size;
    });
    BIO_meth_set_ctrl(made, [](BIO*, int command, long, void*) -> long { return command == BIO_CTRL_FLUSH ? 1 : 0; });
    return made;
  }();
  return method;
}

}  // namespace

TlsEngine::Impl::Impl(std::shared_ptr<TlsContext> shared) : context(std::move(shared)) {
  ssl.reset(SSL_new(context->impl().ssl.get()));
  BIO* bio = BIO_new(engine_bio());
  if (!ssl || !bio) std::abort();  // out of memory
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl.get(), bio, bio);
  SSL_set_app_data(ssl.get(), this);
}

int TlsEngine::Impl::read_input(char* to, std::size_t size) {
  std::size_t taken = 0;
  while (taken < size && !input.empty()) {
    auto& front = input.front();
    const std::size_t part = std::min(size - taken, front.size());
    std::memcpy(to + taken, front.data(), part);
    taken += part;
    if (part == front.size()) {
      input.pop_front();
    } else {
      front = front.subslice(part, front.size() - part);
    }
  }
  return static_cast<int>(taken);
}

void TlsEngine::Impl::write_output(const char* from, std::size_t size) {
  auto& slabs = context->impl().ciphertext;
  while (size > 0) {
    auto room = slabs.room().subspan(room_used);
    if (room.empty()) {
      finish_output();
      continue;
    }
    const std::size_t part = std::min(size, room.size());
    std::memcpy(room.data(), from, part);
    room_used += part;
    from += part;
    size -= part;
  }
}

// The slabs are shared with other engines: what was written is taken before anybody else gets the room.
void TlsEngine::Impl::finish_output() {
  if (room_used == 0) return;
  output.push_back(context->impl().ciphertext.take(room_used));
  room_used = 0;
}

void TlsEngine::Impl::prepare_server() {
  server = true;
  SSL_set_accept_state(ssl.get());
  SSL_CTX* shared = context->impl().ssl.get();
  SSL_CTX_set_client_hello_cb(shared, [](SSL* of, int*, void*) { return impl_of(of).on_client_hello(); }, nullptr);
  SSL_CTX_set_alpn_select_cb(
      shared,
      [](SSL* of, const unsigned char** out, unsigned char* out_size, const unsigned char* offered, unsigned size,
         void*) { return impl_of(of).select_alpn(out, out_size, offered, size); },
      nullptr);
}

void TlsEngine::Impl::prepare_client() {
  SSL_set_connect_state(ssl.get());
  // OpenSSL does not keep a certificate that did not verify.
  SSL_set_verify(ssl.get(), SSL_get_verify_mode(ssl.get()), [](int ok, X509_STORE_CTX* store) {
    const int index = SSL_get_ex_data_X509_STORE_CTX_idx();
    auto& impl = impl_of(static_cast<const SSL*>(X509_STORE_CTX_get_ex_data(store, index)));
    const X509* certificate = X509_STORE_CTX_get0_cert(store);
    if (ok != 1 && certificate && impl.peer_names.empty()) impl.peer_names = certificate_names(certificate);
    return ok;
  });
  auto& name = as_client.server_name;
  if (name.ends_with('.')) name.pop_back();
  X509_VERIFY_PARAM* param = SSL_get0_param(ssl.get());
  X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (is_ip_address(name)) {
    X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(param, name.c_str(), name.size());
    SSL_set_tlsext_host_name(ssl.get(), name.c_str());
  }
  const auto wire = to_wire(as_client.alpn);
  if (!wire.empty()) {
    SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(wire.data()),
                        static_cast<unsigned>(wire.size()));
  }
}

int TlsEngine::Impl::on_client_hello() {
  if (!std::exchange(hello_seen, true)) {
    const unsigned char* bytes = nullptr;
    std::size_t size = 0;
    // Both extensions begin with the length of their list; SNI's one entry has its type before its length.
    if (SSL_client_hello_get0_ext(ssl.get(), TLSEXT_TYPE_application_layer_protocol_negotiation, &bytes, &size) == 1 &&
        size > 2) {
      hello.alpn = from_wire(bytes + 2, size - 2);
    }
    if (SSL_client_hello_get0_ext(ssl.get(), TLSEXT_TYPE_server_name, &bytes, &size) == 1 && size > 5 &&
        bytes[2] == TLSEXT_NAMETYPE_host_name) {
      const std::size_t length = std::size_t{bytes[3]} * 256 + bytes[4];
      hello.server_name.assign(reinterpret_cast<const char*>(bytes + 5), std::min(length, size - 5));
    }
  }
  return as_server.wait_for_answer && !answered ? SSL_CLIENT_HELLO_RETRY : SSL_CLIENT_HELLO_SUCCESS;
}

int TlsEngine::Impl::select_alpn(const unsigned char** out, unsigned char* out_size, const unsigned char* offered,
                                 unsigned size) {
  if (!as_server.wait_for_answer) {
    const auto theirs = from_wire(offered, size);
    const auto best = std::find_first_of(as_server.alpn.begin(), as_server.alpn.end(), theirs.begin(), theirs.end());
    if (best == as_server.alpn.end()) return SSL_TLSEXT_ERR_ALERT_FATAL;
    answer = *best;
  }
  if (answer.empty()) return SSL_TLSEXT_ERR_NOACK;
  *out = reinterpret_cast<const unsigned char*>(answer.data());
  *out_size = static_cast<unsigned char>(answer.size());
  return SSL_TLSEXT_ERR_OK;
}

void TlsEngine::Impl::fail(int ssl_error) {
  if (!failure.empty()) return;
  failure = failure_text({.ssl = ssl.get(),
                          .ssl_error = ssl_error,
                          .server = server,
                          .handshake = !established,
                          .first_bytes = first_bytes,
                          .server_name = as_client.server_name,
                          .peer_names = peer_names,
                          .their_alpn = hello.alpn,
                          .our_alpn = server ? as_server.alpn : as_client.alpn});
}

TlsEngine::TlsEngine(std::shared_ptr<TlsContext> context, const TlsServerHandshake& handshake)
    : impl_(std::make_unique<Impl>(std::move(context))) {
  impl_->as_server = handshake;
  impl_->prepare_server();
}

TlsEngine::TlsEngine(std::shared_ptr<TlsContext> context, const TlsClientHandshake& handshake)
    : impl_(std::make_unique<Impl>(std::move(context))) {
  impl_->as_client = handshake;
  impl_->prepare_client();
}

TlsEngine::~TlsEngine() = default;

void TlsEngine::feed(Slice ciphertext) {
  if (ciphertext.empty()) return;
  auto& first = impl_->first_bytes;
  if (first.size() < kFirstBytes && !impl_->established) {
    first.append(reinterpret_cast<const char*>(ciphertext.data()),
                 std::min(kFirstBytes - first.size(), ciphertext.size()));
  }
  impl_->input.push_back(std::move(ciphertext));
}

bool TlsEngine::has_input() const {
  return !impl_->input.empty() || SSL_has_pending(impl_->ssl.get()) == 1;
}

TlsEngine::Step TlsEngine::step() {
  if (!impl_->failure.empty()) return Step::failed;
  if (impl_->established) return Step::done;
  ERR_clear_error();
  const int result = SSL_do_handshake(impl_->ssl.get());
  impl_->finish_output();
  if (result == 1) {
    impl_->established = true;
    return Step::done;
  }
  const int error = SSL_get_error(impl_->ssl.get(), result);
  if (error == SSL_ERROR_WANT_READ) return Step::needs_input;
  if (error == SSL_ERROR_WANT_CLIENT_HELLO_CB) return Step::waits_for_answer;
  impl_->fail(error);
  return Step::failed;
}

const TlsClientHello& TlsEngine::hello() const {
  return impl_->hello;
}

void TlsEngine::answer(std::string alpn) {
  impl_->answered = true;
  impl_->answer = std::move(alpn);
}

TlsEngine::Read TlsEngine::read(Slice& plaintext) {
  assert(impl_->established);
  if (!impl_->failure.empty()) return Read::failed;
  SSL* ssl = impl_->ssl.get();
  auto& slabs = impl_->context->impl().plaintext;
  const auto room = slabs.room();
  std::size_t filled = 0;
  int error = SSL_ERROR_NONE;
  // A record is not cut where the room ends: another read takes it.
  while (error == SSL_ERROR_NONE && room.size() - filled >= kLargestRecord) {
    ERR_clear_error();
    std::size_t size = 0;
    const int result = SSL_read_ex(ssl, room.data() + filled, room.size() - filled, &size);
    if (result == 1) {
      filled += size;
    } else {
      error = SSL_get_error(ssl, result);
      // Told by the next read, after the plaintext that came before it.
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_ZERO_RETURN) impl_->fail(error);
    }
  }
  impl_->finish_output();  // an answer to a key update, an alert
  if (filled > 0) {
    plaintext = slabs.take(filled);
    return Read::plaintext;
  }
  if (error == SSL_ERROR_ZERO_RETURN) return Read::ended;
  return impl_->failure.empty() ? Read::needs_input : Read::failed;
}

void TlsEngine::write(std::span<const Slice> plaintext) {
  assert(impl_->established);
  for (const auto& piece : plaintext) {
    if (piece.empty() || impl_->write_ended || !impl_->failure.empty()) continue;
    ERR_clear_error();
    std::size_t written = 0;
    const int result = SSL_write_ex(impl_->ssl.get(), piece.data(), piece.size(), &written);
    if (result != 1) impl_->fail(SSL_get_error(impl_->ssl.get(), result));
  }
  impl_->finish_output();
}

void TlsEngine::close_notify() {
  if (std::exchange(impl_->write_ended, true) || !impl_->established || !impl_->failure.empty()) return;
  ERR_clear_error();
  SSL_shutdown(impl_->ssl.get());
  ERR_clear_error();
  impl_->finish_output();
}

std::vector<Slice> TlsEngine::take_output() {
  return std::exchange(impl_->output, {});
}

TlsFacts TlsEngine::facts() const {
  const SSL* ssl = impl_->ssl.get();
  TlsFacts facts;
  facts.version = SSL_get_version(ssl);
  if (const char* cipher = SSL_get_cipher_name(ssl)) facts.cipher = cipher;
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl, &protocol, &size);
  if (size > 0) facts.alpn.assign(reinterpret_cast<const char*>(protocol), size);
  if (impl_->server) {
    facts.server_name = impl_->hello.server_name;
    facts.verification = "not asked for";
  } else {
    if (!is_ip_address(impl_->as_client.server_name)) facts.server_name = impl_->as_client.server_name;
    facts.verification = verification_text(ssl, impl_->as_client.server_name, impl_->peer_names);
  }
  return facts;
}

const std::string& TlsEngine::failure() const {
  return impl_->failure;
}

}  // namespace ztape::net
