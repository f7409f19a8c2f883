// --change: one server's answers differ from another's in one known place.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ztape::peer {

// Gives one field of the N-th message of a type another value: a number is one more, a bool the other, in a text or
// bytes the first byte has its lowest bit turned over (an empty one becomes "1").
class Change {
 public:
  // "CompactBlock.time@3": counted from 1 over all messages of that type that the server sends. A path may go into
  // messages ("CompactBlock.chainMetadata.saplingCommitmentTreeSize"), into the first element where it is repeated.
  // Throws std::invalid_argument.
  static Change parse(const std::string& text);

  // Any thread.
  void apply(google::protobuf::Message& message);

 private:
  std::string type_;
  std::vector<std::string> path_;
  uint64_t number_ = 0;
  uint64_t seen_ = 0;
};

// All the changes of a server.
class Changes {
 public:
  void add(const std::string& text) { changes_.push_back(Change::parse(text)); }
  // The block of that height is one second later, in every answer.
  void at_height(uint64_t height) { height_ = height; }
  // Any thread.
  void apply(google::protobuf::Message& message);

 private:
  std::mutex mutex_;
  std::vector<Change> changes_;
  std::optional<uint64_t> height_;
};

}  // namespace ztape::peer
