// Long and large streams.
#include <chrono>
#include <thread>

#include "tests/peer/metadata.h"
#include "tests/peer/scenario.h"

namespace ztape::peer {

void run_many_messages(const std::string& address, Transcript& transcript) {
  Wallet wallet(address, transcript);
  wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange, block_range(1, 10'000));
}

void run_slow_reader(const std::string& address, Transcript& transcript) {
  // HTTP/2's own flow control must not hold the server back: with windows wider than the stream it is TCP that fills
  // up, and whoever stands between has to pass that on. A synchronous client reads its socket only while it waits in
  // Read().
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 128 * 1024 * 1024);
  Wallet wallet(address, transcript, arguments);
  constexpr uint64_t kBlocks = 64 * 1024 * 1024 / kLargeHeaderBytes;
  wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange,
                block_range(kLargeBlocksBegin, kLargeBlocksBegin + kBlocks - 1), [](uint64_t number, auto&) {
                  // Long enough once for all 64 MiB to pile up somewhere, then a slow pace.
                  if (number == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
                  if (number % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
                });
}

}  // namespace ztape::peer
