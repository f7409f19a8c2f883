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
  Wallet wallet(address, transcript);
  constexpr uint64_t kBlocks = 64 * 1024 * 1024 / kLargeHeaderBytes;
  wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange,
                block_range(kLargeBlocksBegin, kLargeBlocksBegin + kBlocks - 1), [](uint64_t number, auto&) {
                  if (number == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
                  if (number % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
                });
}

void run_huge_message(const std::string& address, Transcript& transcript) {
  // Once the client has seen how long the message is, grpc++ opens the stream's and the connection's window for all of
  // it: what holds the server back then is TCP alone.
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  Wallet wallet(address, transcript, arguments);
  wallet.unary("GetBlock", &Lightwallet::GetBlock, block_id(kHugeBlock));
}

}  // namespace ztape::peer
