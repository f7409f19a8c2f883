// Large headers, and compressed messages.
#include <string>

#include "tests/peer/metadata.h"
#include "tests/peer/scenario.h"

namespace ztape::peer {
namespace {

// `count` headers of 1 KiB each: comes back in the answer's headers and in its trailers.
void add_headers(grpc::ClientContext& context, uint32_t seed, int count) {
  for (int i = 0; i < count; ++i) {
    context.AddMetadata(kEchoPrefix + ("-" + std::to_string(i)),
                        random_hex(seed * 100 + static_cast<uint32_t>(i), 512));
  }
  context.AddMetadata(std::string(kEchoPrefix) + "-bin", random_bytes(seed, 50));
}

rpc::AddressList many_addresses() {
  rpc::AddressList list;
  for (int i = 0; i < 500; ++i) list.add_addresses("tmAnAddressThatComesAgain" + std::to_string(i % 7));
  return list;
}

}  // namespace

void run_large_metadata(const std::string& address, Transcript& transcript) {
  // The smallest frames there are, so that 40 KiB of headers need CONTINUATIONs.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // it would raise the size again
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 16384);
  Wallet wallet(address, transcript, arguments);
  // The same headers again: the second time they are in HPACK's table, as far as they fit.
  for (const int count : {6, 6, 40, 6}) {
    wallet.prepare = [count](grpc::ClientContext& context) { add_headers(context, 1, count); };
    wallet.unary("GetBlock", &Lightwallet::GetBlock, block_id(1));
    wallet.unary("GetBlock", &Lightwallet::GetBlock, block_id(kTipHeight + 1));
    wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange, block_range(1, 3));
  }
}

void run_gzip(const std::string& address, Transcript& transcript) {
  Wallet wallet(address, transcript);
  wallet.prepare = [](grpc::ClientContext& context) {
    context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    context.AddMetadata(kCompress, "gzip");
  };
  wallet.unary("GetTaddressBalance", &Lightwallet::GetTaddressBalance, many_addresses());
  wallet.unary("GetTreeState", &Lightwallet::GetTreeState, block_id(1000));
  wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange, block_range(1, 200));
  rpc::GetAddressUtxosArg asked;
  *asked.mutable_addresses() = many_addresses().addresses();
  wallet.unary("GetAddressUtxos", &Lightwallet::GetAddressUtxos, asked);

  // One side alone.
  wallet.prepare = [](grpc::ClientContext& context) { context.set_compression_algorithm(GRPC_COMPRESS_GZIP); };
  wallet.unary("GetTaddressBalance", &Lightwallet::GetTaddressBalance, many_addresses());
  wallet.prepare = [](grpc::ClientContext& context) { context.AddMetadata(kCompress, "gzip"); };
  wallet.unary("GetTreeState", &Lightwallet::GetTreeState, block_id(1000));
}

}  // namespace ztape::peer
