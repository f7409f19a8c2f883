#include "report/capture_json.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "diagnose/silent_gaps.h"
#include "proto/method_table.h"
#include "report/call_words.h"
#include "report/message_words.h"

namespace ztape::report {
namespace {

// In the order in which the keys are set.
using Json = nlohmann::ordered_json;

// What is not UTF-8 is replaced: JSON has no other way.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json since(int64_t opened_ns, int64_t time_ns) {
  return time_ns < 0 ? Json() : Json(time_ns - opened_ns);
}

std::string kind_of(const std::string& path) {
  const auto* method = find_method(path);
  return method ? std::string(name(method->kind)) : "unknown";
}

Json tls_json(const capture::TlsState& tls) {
  return {{"version", tls.version()},
          {"cipher", tls.cipher()},
          {"alpn", tls.alpn()},
          {"server_name", tls.server_name()},
          {"verification", tls.verification()}};
}

Json or_null(const std::string* text) {
  return text ? Json(*text) : Json();
}

}  // namespace

std::string call_json(const http2::RecordedCapture& capture, const http2::RecordedConnection& connection,
                      const http2::Call& call) {
  Json row;
  row["capture"] = capture.file;
  row["connection"] = connection.id;
  row["stream"] = call.stream;
  row["session"] = connection.id;  // a session is one recorded connection
  row["time"] = http2::absolute_time(capture.start, call.start_ns < 0 ? connection.open_ns : call.start_ns);
  row["method"] = call.path;
  row["kind"] = kind_of(call.path);
  row["start_ns"] = since(connection.open_ns, call.start_ns);
  row["first_byte_ns"] = since(connection.open_ns, call.first_byte_ns);
  row["end_ns"] = since(connection.open_ns, call.end_ns);
  row["request_messages"] = call.request_message_count;
  row["request_bytes"] = content_bytes(call, Direction::client_to_server);
  row["response_messages"] = call.response_message_count;
  row["response_bytes"] = content_bytes(call, Direction::server_to_client);
  row["http_status"] = or_null(call.http_status);
  row["grpc_status"] = or_null(call.grpc_status);
  row["grpc_message"] = or_null(call.grpc_message);
  row["reset_code"] = or_null(call.reset_code);
  row["ended_by"] = name(call.ended_by);
  row["user_agent"] = or_null(http2::find_header(call.request_headers, "user-agent"));
  row["downstream_peer"] = connection.open.downstream_peer();
  row["upstream_local"] = connection.open.upstream_local();
  row["downstream_local"] = connection.open.downstream_local();
  row["upstream_url"] = connection.open.upstream_url();
  row["protocol"] = name(call.content);
  row["http_version"] = name(call.http_version);
  if (const auto* verb = http2::find_header(call.request_headers, ":method")) row["http_method"] = *verb;
  if (const auto methods = json_rpc_methods(call.request_beginning); !methods.empty()) row["json_rpc"] = methods;
  if (call.content == http2::Content::other || !call.response_beginning.empty()) {
    const auto* type = http2::find_header(call.response_headers, "content-type");
    row["response_content_type"] = or_null(type);
  }
  if (call.began_earlier) row["began_earlier"] = true;
  if (!call.unreadable_reason.empty()) row["unreadable"] = call.unreadable_reason;
  return dump(row);
}

namespace {

// A body that is no message is told by its beginning, as text where it is text.
void add_bodies(Json& row, const char* name, const google::protobuf::Descriptor* type,
                const std::vector<http2::Message>& messages, const std::string& beginning, int64_t opened_ns) {
  auto& list = row[name] = Json::array();
  for (const auto& message : messages) {
    Json each{{"time_ns", since(opened_ns, message.last_byte_ns)}, {"length", message.length}};
    if (message.compressed) each["compressed"] = true;
    if (message.error.empty()) {
      each["message"] = message_json(type, message.body);
    } else {
      each["error"] = message.error;
    }
    list.push_back(std::move(each));
  }
  if (!beginning.empty()) row[std::string(name) + "_body"] = beginning;
}

}  // namespace

std::string call_with_messages_json(const http2::RecordedCapture& capture, const http2::RecordedConnection& connection,
                                    const http2::Call& call) {
  auto row = Json::parse(call_json(capture, connection, call));
  add_bodies(row, "requests", request_type(call.path), call.requests, call.request_beginning, connection.open_ns);
  add_bodies(row, "responses", response_type(call.path), call.responses, call.response_beginning, connection.open_ns);
  return dump(row);
}

std::string frame_json(const http2::RecordedConnection& connection, const http2::Frame& frame) {
  Json row;
  row["connection"] = connection.id;
  row["direction"] = name(frame.direction);
  row["time_ns"] = frame.last_byte_ns - connection.open_ns;
  row["first_byte_ns"] = frame.first_byte_ns - connection.open_ns;
  row["stream"] = frame.stream;
  row["type"] = http2::frame_type_name(frame.type);
  row["flags"] = frame.flags;
  row["length"] = frame.length;
  row["offset"] = frame.offset;
  return dump(row);
}

std::string capture_json(const http2::RecordedCapture& capture) {
  Json page;
  page["capture"] = capture.file;
  page["time"] = http2::absolute_time(capture.start, 0);
  page["tool_version"] = capture.start.tool_version();
  page["source"] = capture.start.source();
  if (!capture.start.run().empty()) {
    page["run"] = capture.start.run();
    page["file_number"] = capture.start.file_number();
  }
  page["format_version"] = capture.start.format_version();
  page["settings"] = Json::object();
  for (const auto& [key, value] :
       std::map<std::string, std::string>(capture.start.settings().begin(), capture.start.settings().end())) {
    page["settings"][key] = value;
  }
  page["notes"] = Json::object();
  for (const auto& [key, value] :
       std::map<std::string, std::string>(capture.start.notes().begin(), capture.start.notes().end())) {
    page["notes"][key] = value;
  }
  page["loop_lag"] = Json();
  if (const auto& lag = capture.loop_lag; lag.turns.count() > 0) {
    page["loop_lag"] = {
        {"turns", lag.turns.count()}, {"p99_ns", or_null(lag.turns.quantile_ns(.99))}, {"max_ns", lag.max_ns}};
  }
  page["connections"] = Json::array();
  for (const auto& connection : capture.connections) {
    Json row;
    row["connection"] = connection.id;
    row["time"] = http2::absolute_time(capture.start, connection.open_ns);
    row["close_ns"] = since(connection.open_ns, connection.close_ns);
    row["downstream_peer"] = connection.open.downstream_peer();
    row["downstream_local"] = connection.open.downstream_local();
    const auto& balancer = connection.open.downstream_balancer();
    row["downstream_balancer"] = balancer.empty() ? Json() : Json(balancer);
    row["upstream_url"] = connection.open.upstream_url();
    row["upstream_local"] = connection.open.upstream_local();
    row["upstream_peer"] = connection.open.upstream_peer();
    const auto& open = connection.open;
    row["downstream_tls"] = open.has_downstream_tls() ? tls_json(open.downstream_tls()) : Json();
    row["upstream_tls"] = open.has_upstream_tls() ? tls_json(open.upstream_tls()) : Json();
    row["protocol"] = protocol_word(connection);
    const auto note = protocol_note(connection);
    row["protocol_note"] = note.empty() ? Json() : Json(note);
    row["calls"] = connection.calls.size();
    row["client_to_server_bytes"] = connection.bytes[0];
    row["server_to_client_bytes"] = connection.bytes[1];
    if (connection.began_earlier) {
      row["earlier_client_to_server_bytes"] = connection.earlier_bytes[0];
      row["earlier_server_to_client_bytes"] = connection.earlier_bytes[1];
    }
    row["gap_bytes"] = connection.gap_bytes;
    row["missing_bytes"] = connection.missing_bytes;
    row["silent_gaps_ns"] = diagnose::total_ns(diagnose::silent_gaps(connection));
    row["error"] = connection.close.error().empty() ? Json() : Json(connection.close.error());
    row["unreadable"] = Json::array();
    for (const auto& lost : connection.unreadable) {
      row["unreadable"].push_back({{"direction", name(lost.direction)},
                                   {"offset", lost.offset},
                                   {"reason", lost.reason},
                                   {"headers_only", lost.headers_only}});
    }
    page["connections"].push_back(std::move(row));
  }
  page["gaps"] = Json::array();
  for (const auto& gap : capture.gaps) {
    page["gaps"].push_back({{"connection", gap.connection()},
                            {"direction", name(static_cast<Direction>(gap.direction()))},
                            {"offset", gap.offset()},
                            {"bytes", gap.bytes()},
                            {"reason", gap.reason()}});
  }
  page["damage"] = Json::array();
  for (const auto& damage : capture.damage) {
    page["damage"].push_back({{"kind", kind(damage)},
                              {"offset", damage.offset},
                              {"bytes", damage.bytes},
                              {"first_block", damage.first_block},
                              {"blocks", damage.block_count},
                              {"message", damage.message}});
  }
  return page.dump(2, ' ', true, Json::error_handler_t::replace);
}

}  // namespace ztape::report
