#include "tests/peer/transcript.h"

#include <cstdio>
#include <map>
#include <string_view>
#include <vector>

namespace ztape::peer {
namespace {

constexpr std::size_t kLongestShown = 100;

std::string shown(std::string_view text) {
  if (text.size() > kLongestShown) {
    Digest digest;
    digest.add(text);
    return digest.text();
  }
  std::string out;
  for (const char byte : text) {
    char escape[8];
    const auto value = static_cast<unsigned char>(byte);
    std::snprintf(escape, sizeof(escape), "\\x%02x", value);
    out += value < 0x20 || value >= 0x7f || byte == '"' || byte == '\\' ? escape : std::string(1, byte);
  }
  return out;
}

void add_metadata(const char* name, const std::multimap<grpc::string_ref, grpc::string_ref>& metadata,
                  Transcript& transcript) {
  for (const auto& [key, value] : metadata) {
    transcript.line("  " + std::string(name) + " " + std::string(key.data(), key.size()) + ": " +
                    shown({value.data(), value.size()}));
  }
}

}  // namespace

void CallLog::finish(const grpc::Status& status, const grpc::ClientContext& context, Transcript& transcript) const {
  transcript.line("call " + path_ + " | requests " + requests_.text() + " | responses " + responses_.text() +
                  " | status " + std::to_string(status.error_code()) + " \"" + shown(status.error_message()) + "\"");
  add_metadata("header", context.GetServerInitialMetadata(), transcript);
  add_metadata("trailer", context.GetServerTrailingMetadata(), transcript);
}

}  // namespace ztape::peer
