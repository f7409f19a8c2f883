#include "report/message_page.h"

#include <algorithm>

#include "proto/method_table.h"
#include "report/call_words.h"
#include "report/message_words.h"
#include "report/text.h"

namespace ztape::report {
namespace {

constexpr std::size_t kMostText = 1000;
constexpr std::size_t kMostBodyLines = 6;  // of a body that is not gRPC

std::string cut(const std::string& line, std::size_t width) {
  return (width == 0 ? line : shortened(line, width)) + "\n";
}

void add_messages(std::string& text, const char* mark, const google::protobuf::Descriptor* type,
                  const std::vector<http2::Message>& messages, std::size_t width) {
  for (const auto& message : messages) {
    auto line = message.error.empty() ? message_text(type, message.body, kMostText)
                                      : counted(message.length, "byte") + ": " + escaped(message.error, 200);
    if (message.compressed) line += " (compressed)";
    text += cut("    " + std::string(mark) + line, width);
  }
}

void add_body(std::string& text, const char* mark, std::string_view body, std::size_t width) {
  for (std::size_t lines = 0; !body.empty(); ++lines) {
    const auto end = body.find('\n');
    auto line = body.substr(0, end);
    body = end == std::string_view::npos ? std::string_view() : body.substr(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (lines == kMostBodyLines) {
      text += "    " + std::string(mark) + "...\n";
      return;
    }
    text += cut("    " + std::string(mark) + escaped(line, kMostText), width);
  }
}

}  // namespace

std::string call_with_messages(const http2::RecordedConnection& connection, const http2::Call& call,
                               std::size_t width) {
  std::string head = std::to_string(connection.id) + "/" + std::to_string(call.stream) + "  " +
                     escaped(method_name(call), 60) + "  " + outcome(call);
  if (call.grpc_message && !call.grpc_message->empty()) head += ": " + escaped(*call.grpc_message, 200);
  if (call.start_ns >= 0) {
    head += "  at " + duration(call.start_ns - connection.open_ns);
    if (call.end_ns >= 0) head += ", took " + duration(call.end_ns - call.start_ns);
  }
  std::string text = cut(head, width);
  add_messages(text, "> ", request_type(call.path), call.requests, width);
  add_body(text, "> ", call.request_beginning, width);
  add_messages(text, "< ", response_type(call.path), call.responses, width);
  add_body(text, "< ", call.response_beginning, width);
  return text;
}

}  // namespace ztape::report
