// What client and server agree on beside the protocol. Everything that a server does follows from the request alone.
#pragma once

#include <cstdint>
#include <string>

namespace ztape::peer {

// The server's chain. A block above the tip: NOT_FOUND; a range that runs over it: the blocks up to the tip, then
// OUT_OF_RANGE.
inline constexpr uint64_t kTipHeight = 1'000'000;

// Blocks of these heights have headers of 64 KiB: 1,024 of them are 64 MiB in one stream.
inline constexpr uint64_t kLargeBlocksBegin = 500'000;
inline constexpr uint64_t kLargeBlocksEnd = 510'000;
inline constexpr std::size_t kLargeHeaderBytes = 64 * 1024;
// The block of this height has a header of 64 MiB: one message, for which the client opens its windows wide.
inline constexpr uint64_t kHugeBlock = 600'000;
inline constexpr std::size_t kHugeHeaderBytes = 64 * 1024 * 1024;

// Request metadata: the server compresses its answers with gzip.
inline constexpr char kCompress[] = "x-peer-compress";
// Request metadata whose names begin so come back in the answer's headers, and in its trailers as kTrailerPrefix….
inline constexpr char kEchoPrefix[] = "x-peer-echo";
inline constexpr char kTrailerPrefix[] = "x-peer-trailer";

// Above grpc's default of 8 KiB, for header blocks that need CONTINUATION frames.
inline constexpr int kMaxMetadataBytes = 256 * 1024;

// Pseudo-random bytes that follow from the seed (splitmix64).
uint64_t mixed(uint64_t seed);
std::string random_bytes(uint64_t seed, std::size_t size);
// Lower case.
std::string hex(const std::string& bytes);
// Hex of so many random bytes.
std::string random_hex(uint64_t seed, std::size_t bytes);

}  // namespace ztape::peer
