// The bytes of the answers that the bench's server gives: gRPC messages out of a chain of compact blocks that
// compact_blocks.py made and counted, cut into DATA frames as one of the two families of indexers cuts them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ztape::bench {

// one_frame_a_message: grpc-go. batches: tonic, which fills 32 KiB with messages before it writes.
enum class Framing { batches, one_frame_a_message };

class Chain {
 public:
  // Reads a file of gRPC messages. Ends the program with a sentence where it is none.
  Chain(const std::string& path, Framing framing);

  // One answer, as positions in the chain or as messages of a given size whose bytes are taken from it.
  struct Answer {
    std::size_t position = 0;       // in the chain
    std::size_t left = 0;           // bytes to send
    std::size_t message_bytes = 0;  // not 0: every message has so many, and a prefix of five bytes
    std::size_t sent = 0;           // of such messages, prefixes included
  };

  Answer next_block();                  // the next one of at most 2 KiB
  Answer next_part(std::size_t parts);  // the next n-th of the chain, so that n of them are the whole
  Answer sized(std::size_t message_bytes, std::size_t messages);

  // Fills a DATA frame's payload. The count; less than fits where the framing ends a frame.
  std::size_t fill(Answer& answer, std::span<uint8_t> payload);

 private:
  [[nodiscard]] std::size_t frame_end(std::size_t position) const;

  Framing framing_;
  std::vector<uint8_t> bytes_;
  std::vector<std::size_t> message_ends_;
  std::vector<std::size_t> frame_ends_;
  std::size_t block_ = 0;
  std::size_t part_ = 0;
  std::size_t loose_ = 0;  // where the next bytes of a sized message come from
};

}  // namespace ztape::bench
