#include "tests/peer/transcript.h"

#include <map>

namespace ztape::peer {
namespace {

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
