#include "report/call_words.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "http2/first_bytes.h"
#include "proto/method_table.h"
#include "report/text.h"

namespace ztape::report {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostMethods = 100;  // of a batch
constexpr std::size_t kMostNamed = 6;      // in a note

// Finds "method" where JSON-RPC 1.0 and 2.0 have it: in the object, or in each object of the array, that the body is.
class MethodFinder final : public nlohmann::json_sax<Json> {
 public:
  std::vector<std::string> methods;

  bool null() override { return value(); }
  bool boolean(bool /*flag*/) override { return value(); }
  bool number_integer(number_integer_t /*number*/) override { return value(); }
  bool number_unsigned(number_unsigned_t /*number*/) override { return value(); }
  bool number_float(number_float_t /*number*/, const string_t& /*text*/) override { return value(); }
  bool binary(binary_t& /*bytes*/) override { return value(); }
  bool string(string_t& text) override {
    if (due_) methods.push_back(text);
    due_ = false;
    return methods.size() < kMostMethods;
  }
  bool key(string_t& name) override {
    due_ = depth_ == (in_batch_ ? 2 : 1) && name == "method";
    return true;
  }
  bool start_object(std::size_t /*elements*/) override { return ++depth_ < kDeepest && value(); }
  bool end_object() override { return depth_-- > 0; }
  bool start_array(std::size_t /*elements*/) override {
    if (depth_ == 0) in_batch_ = true;
    return ++depth_ < kDeepest && value();
  }
  bool end_array() override { return depth_-- > 0; }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/, const Json::exception& /*error*/) override {
    return false;  // the body is cut here: what was found counts
  }

 private:
  static constexpr int kDeepest = 100;
  bool value() {
    due_ = false;
    return true;
  }
  int depth_ = 0;
  bool in_batch_ = false;
  bool due_ = false;  // the value that follows is the method's name
};

std::string http_name(const http2::Call& call) {
  const auto* verb = http2::find_header(call.request_headers, ":method");
  return (verb ? *verb : std::string("?")) + " " + call.path;
}

std::string content_type(const http2::HeaderList& fields) {
  const auto* type = http2::find_header(fields, "content-type");
  return type ? type->substr(0, type->find(';')) : "";
}

std::string http_outcome(const http2::Call& call) {
  std::string text = "HTTP " + (call.http_status ? std::to_string(*call.http_status) : std::string("?"));
  // Of an answer without a body everything is in its trailers.
  auto type = content_type(call.response_headers);
  if (type.empty()) type = content_type(call.trailers);
  return type.empty() ? text : text + " " + escaped(type, 40);
}

// "a ×12, b, c and 4 more"
std::string counted_names(const std::map<std::string, uint64_t>& counts) {
  std::vector<std::pair<std::string, uint64_t>> rows(counts.begin(), counts.end());
  std::ranges::stable_sort(rows, std::greater<>(), [](const auto& row) { return row.second; });
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == kMostNamed) return text + " and " + std::to_string(rows.size() - i) + " more";
    if (i > 0) text += ", ";
    text += escaped(rows[i].first, 60);
    if (rows[i].second > 1) text += " ×" + count(rows[i].second);
  }
  return text;
}

std::string http1_note(const http2::RecordedConnection& connection) {
  std::map<std::string, uint64_t> requests;
  std::map<std::string, std::map<std::string, uint64_t>> json_rpc;  // methods, by "POST /"
  std::map<std::string, uint64_t> answers;
  std::string version = "HTTP/1.1";
  for (const auto& call : connection.calls) {
    if (call.http_version == http2::HttpVersion::http2) continue;
    version = "HTTP/" + std::string(name(call.http_version));
    const auto methods = json_rpc_methods(call.request_beginning);
    const auto what = http_name(call);
    for (const auto& method : methods) ++json_rpc[what][method];
    if (methods.empty()) {
      const auto content = call.content == http2::Content::other ? "" : ", " + std::string(name(call.content));
      ++requests[what + content];
    }
    ++answers[call.http_status ? http_outcome(call).substr(5) : "nothing"];
  }
  std::string text = version;
  const char* separator = " ";
  for (const auto& [what, methods] : json_rpc) {
    text += std::exchange(separator, "; ") + escaped(what, 60) + ", JSON-RPC " + counted_names(methods);
  }
  if (!requests.empty()) text += separator + counted_names(requests);
  if (!answers.empty()) text += "; answered " + counted_names(answers);
  // Frames were read of it.
  if (connection.changed_to.empty() && connection.bytes[1] > 0 && connection.first_bytes[1].empty()) {
    return text + ": the indexer speaks HTTP/2 only";
  }
  if (!connection.changed_to.empty()) text += "; then " + escaped(connection.changed_to, 40);
  if (!connection.http1_lost.empty()) text += "; not readable any more: " + escaped(connection.http1_lost, 120);
  return text;
}

std::string first_line(const std::string& bytes) {
  return escaped(bytes.substr(0, bytes.find_first_of("\r\n")), 80);
}

bool readable_text(std::string_view bytes) {
  return std::ranges::all_of(bytes.substr(0, 16),
                             [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\r' || c == '\n'; });
}

std::string other_note(const std::string& bytes) {
  if (const auto hello = http2::read_client_hello(bytes)) {
    std::string text = "TLS handshake bytes";
    if (!hello->server_name.empty()) text += ", SNI " + escaped(hello->server_name, 80);
    return text + ": the wallet speaks TLS to a plaintext port";
  }
  constexpr std::string_view kProxyHeader2{"\r\n\r\n\0\r\nQUIT\n", 12};
  if (bytes.starts_with("PROXY ") || bytes.starts_with(kProxyHeader2)) {
    return "a PROXY protocol header: whoever connects needs --proxy-protocol at the recorder";
  }
  constexpr std::size_t kShown = 16;
  auto text = "not HTTP: first bytes " + http2::hex_dump(bytes, kShown);
  if (readable_text(bytes)) text += " \"" + first_line(bytes.substr(0, 40)) + "\"";
  return text;
}

// Of a server that does not answer HTTP/2 with HTTP/2.
std::string answer_note(const std::string& bytes) {
  if (bytes.starts_with("HTTP/")) {
    std::string text = "answered \"" + first_line(bytes) + "\"";
    const auto body = bytes.find("\r\n\r\n");
    if (body != std::string::npos && body + 4 < bytes.size()) text += ": " + escaped(bytes.substr(body + 4), 100);
    return text;
  }
  if (http2::is_tls_record(bytes)) return "answered with TLS: the indexer wants https://";
  if (readable_text(bytes)) return "answered with what is not HTTP: \"" + first_line(bytes) + "\"";
  return "answered with what is not HTTP: " + http2::hex_dump(bytes, 16);
}

// Its first bytes are in an earlier file.
bool begins_unknown(const http2::RecordedConnection& connection) {
  return connection.began_earlier && connection.wire == http2::Wire::other;
}

}  // namespace

std::vector<std::string> json_rpc_methods(const std::string& beginning) {
  const auto first = beginning.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || (beginning[first] != '{' && beginning[first] != '[')) return {};
  MethodFinder finder;
  [[maybe_unused]] const bool whole = Json::sax_parse(beginning, &finder, Json::input_format_t::json, false);
  return std::move(finder.methods);
}

std::string method_name(const http2::Call& call) {
  if (call.path.empty()) return "(request not readable)";
  if (call.content != http2::Content::other || call.request_headers.empty()) return std::string(short_name(call.path));
  const auto methods = json_rpc_methods(call.request_beginning);
  if (methods.empty()) return http_name(call);
  return methods.size() == 1 ? methods[0] : methods[0] + " and " + std::to_string(methods.size() - 1) + " more";
}

std::string grpc_status_name(int status) {
  static constexpr std::array kNames{
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  if (status >= 0 && status < static_cast<int>(kNames.size())) return kNames[static_cast<std::size_t>(status)];
  return "status " + std::to_string(status);
}

std::string outcome(const http2::Call& call) {
  const auto code = [&] { return call.reset_code ? " " + http2::error_code_name(*call.reset_code) : std::string(); };
  switch (call.ended_by) {
    case http2::EndedBy::trailers:
      if (call.grpc_status) return grpc_status_name(*call.grpc_status);
      if (!call.http_status) return "no grpc-status";
      return call.content == http2::Content::other ? http_outcome(call) : http_outcome(call) + ", no grpc-status";
    case http2::EndedBy::client_reset: return "client reset" + code();
    case http2::EndedBy::server_reset: return "server reset" + code();
    case http2::EndedBy::goaway: return "GOAWAY" + code();
    case http2::EndedBy::client_close: return "client closed";
    case http2::EndedBy::server_close: return "server closed";
    case http2::EndedBy::still_open: return "still open";
  }
  return "";
}

uint64_t content_bytes(const http2::Call& call, Direction direction) {
  const bool request = direction == Direction::client_to_server;
  const auto messages = request ? call.request_bytes : call.response_bytes;
  if (messages > 0 || call.content != http2::Content::other) return messages;
  return request ? call.request_tail_bytes : call.response_tail_bytes;
}

std::string protocol_word(const http2::RecordedConnection& connection) {
  using http2::Wire;
  if (begins_unknown(connection)) return "not HTTP/2";
  switch (connection.wire) {
    case Wire::undecided: return connection.first_bytes[0].empty() ? "nothing" : "not HTTP";
    case Wire::other: return http2::read_client_hello(connection.first_bytes[0]) ? "TLS" : "not HTTP";
    case Wire::http1: break;
    case Wire::http2: {
      const auto is_web = [](const http2::Call& call) {
        return call.content == http2::Content::grpc_web || call.content == http2::Content::grpc_web_text;
      };
      const auto is_other = [](const http2::Call& call) { return call.content == http2::Content::other; };
      if (std::ranges::any_of(connection.calls, is_web)) return "gRPC-Web";
      return std::ranges::all_of(connection.calls, is_other) ? "HTTP/2" : "gRPC";
    }
  }
  if (connection.changed_to == "h2c") return "h2c upgrade";
  return connection.calls.empty() && !connection.http1_lost.empty() ? "not HTTP" : "HTTP/1.1";
}

std::string protocol_note(const http2::RecordedConnection& connection) {
  using http2::Wire;
  if (begins_unknown(connection)) return "";  // why it cannot be read is all that this file knows
  const auto& client = connection.first_bytes[0];
  const auto& server = connection.first_bytes[1];
  switch (connection.wire) {
    case Wire::undecided:
      if (client.empty()) return server.empty() ? "" : "the indexer spoke first: " + http2::hex_dump(server, 16);
      return other_note(client);
    case Wire::other: return other_note(client);
    case Wire::http1:
      if (connection.changed_to == "h2c") return "HTTP/1.1, upgraded to HTTP/2 (h2c)";
      if (connection.calls.empty() && !connection.http1_lost.empty()) return other_note(client);
      return http1_note(connection);
    case Wire::http2: return server.empty() ? "" : "HTTP/2, " + answer_note(server);
  }
  return "";
}

std::string route(const capture::ConnectionOpen& open) {
  const auto& to = open.upstream_url().empty() ? open.upstream_peer() : open.upstream_url();
  if (open.downstream_local().empty() && to.empty()) return "";
  return escaped(open.downstream_local(), 60) + " -> " + escaped(to, 80);
}

}  // namespace ztape::report
