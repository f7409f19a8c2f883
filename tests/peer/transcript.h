// What a scenario saw, in lines that are the same in every run: no times, no ports. Calls one after the other; threads
// have one each.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <string>

#include "tests/peer/digest.h"

namespace ztape::peer {

class Transcript {
 public:
  void line(const std::string& text) { text_ += text + "\n"; }
  void add(const Transcript& other) { text_ += other.text_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// A call as the client saw it. Its line is
//   call PATH | requests DIGEST | responses DIGEST | status NUMBER "MESSAGE"
// followed by its metadata, a line each.
class CallLog {
 public:
  explicit CallLog(std::string path) : path_(std::move(path)) {}
  void request(const google::protobuf::Message& message) { requests_.add(message.SerializeAsString()); }
  void response(const google::protobuf::Message& message) { responses_.add(message.SerializeAsString()); }
  [[nodiscard]] const Digest& responses() const { return responses_; }
  void finish(const grpc::Status& status, const grpc::ClientContext& context, Transcript& transcript) const;

 private:
  std::string path_;
  Digest requests_;
  Digest responses_;
};

}  // namespace ztape::peer
