// What the first bytes of a connection say that it speaks. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ztape::http2 {

enum class Wire { undecided, http2, http1, other };

// By what the client has sent first: `undecided` until there is enough of it, at most 24 bytes.
Wire wire_of(std::string_view client_bytes);

// A TLS ClientHello, as far as it is there.
struct ClientHello {
  std::string server_name;        // SNI (RFC 6066, section 3); "" where it has none
  std::vector<std::string> alpn;  // RFC 7301
};

// nullopt: the bytes do not begin with a TLS handshake record that holds a ClientHello (RFC 8446, section 4.1.2).
std::optional<ClientHello> read_client_hello(std::string_view bytes);

// The bytes begin with a TLS record (RFC 8446, section 5.1): what a TLS server says to a client that speaks plaintext
// is an alert.
bool is_tls_record(std::string_view bytes);

// "16 03 01 02 00": at most `most` bytes as people read them in a dump.
std::string hex_dump(std::string_view bytes, std::size_t most);

}  // namespace ztape::http2
