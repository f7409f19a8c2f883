// Calls that do not end well.
#include <chrono>

#include "tests/peer/metadata.h"
#include "tests/peer/scenario.h"

namespace ztape::peer {

void run_cancel(const std::string& address, Transcript& transcript) {
  Wallet wallet(address, transcript);
  // The server sends three and then waits, so that nothing is under way when the client leaves.
  wallet.stream("GetMempoolStream", &Lightwallet::GetMempoolStream, rpc::Empty(),
                [](uint64_t number, grpc::ClientContext& context) {
                  if (number == 3) context.TryCancel();
                });

  grpc::ClientContext context;
  CallLog log("/ztape.peer.Echo/Both");
  const auto stub = Echo::NewStub(wallet.channel);
  const auto stream = stub->Both(&context);
  EchoMessage message;
  message.set_number(1);
  log.request(message);
  EchoMessage back;
  if (stream->Write(message) && stream->Read(&back)) log.response(back);
  context.TryCancel();
  const auto status = stream->Finish();
  log.finish(status, context, transcript);

  // The connection serves on.
  wallet.unary("GetBlock", &Lightwallet::GetBlock, block_id(1));
}

void run_deadline(const std::string& address, Transcript& transcript) {
  Wallet wallet(address, transcript);
  wallet.unary("GetLatestBlock", &Lightwallet::GetLatestBlock, rpc::ChainSpec());
  wallet.prepare = [](grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
  };
  rpc::Duration hour;
  hour.set_intervalus(3'600'000'000);
  wallet.unary("Ping", &Lightwallet::Ping, hour);
  wallet.prepare = [](grpc::ClientContext&) {};
  rpc::Duration moment;
  moment.set_intervalus(20'000);
  wallet.unary("Ping", &Lightwallet::Ping, moment);
}

void run_error_before(const std::string& address, Transcript& transcript) {
  Wallet wallet(address, transcript);
  wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange, block_range(kTipHeight + 1, kTipHeight + 5));
  wallet.unary("GetBlock", &Lightwallet::GetBlock, block_id(kTipHeight + 1));
  wallet.unary("GetTransaction", &Lightwallet::GetTransaction, rpc::TxFilter());
  wallet.unary("GetTreeState", &Lightwallet::GetTreeState, block_id(kTipHeight + 1));
}

void run_error_middle(const std::string& address, Transcript& transcript) {
  Wallet wallet(address, transcript);
  wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange, block_range(kTipHeight - 2, kTipHeight + 5));
  wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange, block_range(kTipHeight - 500, kTipHeight + 5));
  wallet.unary("GetBlock", &Lightwallet::GetBlock, block_id(kTipHeight));
}

}  // namespace ztape::peer
