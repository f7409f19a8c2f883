// The one error type that crosses library borders, in a std::expected.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>

namespace ztape {

enum class ErrorCode {
  usage,                // the words of a command or an option are off
  not_a_capture,        // the file is something else
  unsupported_version,  // a capture of a newer format
  corrupt,              // bytes are there, but not the ones that were written
  torn,                 // the file ends too early
  over_limit,           // larger than a reader is willing to hold
  io,                   // the operating system refused
  no_room,              // the disk, a quota or a limit of the file's size is full: it may pass
  address,              // an address or URL that cannot be used
  unreachable,          // nothing answers there
  protocol,             // the peer does not speak what it should
};

// `message` is a sentence a user can act on; `subject` is the file or the address it is about ("" for none).
struct Error {
  ErrorCode code = ErrorCode::io;
  std::string message;
  std::string subject;
  std::optional<uint64_t> offset = std::nullopt;  // of the byte in the file `subject`

  // "sync.ztape: offset 4711: block 3 does not match its checksum"
  [[nodiscard]] std::string line() const {
    std::string text;
    if (!subject.empty()) text += subject + ": ";
    if (offset) text += "offset " + std::to_string(*offset) + ": ";
    return text + message;
  }
};

template <typename T>
using Result = std::expected<T, Error>;

}  // namespace ztape
