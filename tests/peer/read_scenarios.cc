// What wallets read, a call after the other on one channel.
#include "tests/peer/metadata.h"
#include "tests/peer/scenario.h"

namespace ztape::peer {
namespace {

rpc::TxFilter tx_filter(uint64_t number, std::size_t bytes = 32) {
  rpc::TxFilter filter;
  filter.set_hash(random_bytes(number, bytes));
  return filter;
}

rpc::TransparentAddressBlockFilter address_filter(uint32_t number, uint64_t start, uint64_t end) {
  rpc::TransparentAddressBlockFilter filter;
  filter.set_address(address_text(number));
  *filter.mutable_range() = block_range(start, end);
  return filter;
}

rpc::AddressList addresses(uint32_t count) {
  rpc::AddressList list;
  for (uint32_t i = 0; i < count; ++i) list.add_addresses(address_text(i));
  return list;
}

rpc::GetAddressUtxosArg utxos_of(uint32_t count, uint64_t start) {
  rpc::GetAddressUtxosArg asked;
  for (uint32_t i = 0; i < count; ++i) asked.add_addresses(address_text(i));
  asked.set_startheight(start);
  return asked;
}

rpc::GetSubtreeRootsArg roots(rpc::ShieldedProtocol pool, uint32_t start) {
  rpc::GetSubtreeRootsArg asked;
  asked.set_shieldedprotocol(pool);
  asked.set_startindex(start);
  return asked;
}

void balance_stream(Wallet& wallet, uint32_t count) {
  grpc::ClientContext context;
  CallLog log(path_of("GetTaddressBalanceStream"));
  rpc::Balance balance;
  const auto writer = wallet.stub->GetTaddressBalanceStream(&context, &balance);
  for (uint32_t i = 0; i < count; ++i) {
    rpc::Address address;
    address.set_address(address_text(i));
    log.request(address);
    writer->Write(address);
  }
  writer->WritesDone();
  const auto status = writer->Finish();
  if (status.ok()) log.response(balance);
  log.finish(status, context, wallet.transcript);
}

}  // namespace

void run_unary(const std::string& address, Transcript& transcript) {
  Wallet wallet(address, transcript);
  wallet.unary("GetLightdInfo", &Lightwallet::GetLightdInfo, rpc::Empty());
  wallet.unary("GetLatestBlock", &Lightwallet::GetLatestBlock, rpc::ChainSpec());
  wallet.unary("GetBlock", &Lightwallet::GetBlock, block_id(1));
  wallet.unary("GetBlock", &Lightwallet::GetBlock, block_id(kLargeBlocksBegin));
  wallet.unary("GetBlock", &Lightwallet::GetBlock, block_id(kTipHeight + 1));
  wallet.unary("GetBlockNullifiers", &Lightwallet::GetBlockNullifiers, block_id(2));
  wallet.unary("GetTransaction", &Lightwallet::GetTransaction, tx_filter(1));
  wallet.unary("GetTransaction", &Lightwallet::GetTransaction, tx_filter(1, 31));
  wallet.unary("GetTaddressBalance", &Lightwallet::GetTaddressBalance, addresses(3));
  wallet.unary("GetTaddressBalance", &Lightwallet::GetTaddressBalance, addresses(0));
  wallet.unary("GetTreeState", &Lightwallet::GetTreeState, block_id(1000));
  wallet.unary("GetLatestTreeState", &Lightwallet::GetLatestTreeState, rpc::Empty());
  wallet.unary("GetAddressUtxos", &Lightwallet::GetAddressUtxos, utxos_of(2, 100));
  rpc::RawTransaction transaction;
  wallet.unary("SendTransaction", &Lightwallet::SendTransaction, transaction);
  transaction.set_data(random_bytes(9, 2000));
  wallet.unary("SendTransaction", &Lightwallet::SendTransaction, transaction);
}

void run_session(const std::string& address, Transcript& transcript) {
  Wallet wallet(address, transcript);
  wallet.unary("GetLightdInfo", &Lightwallet::GetLightdInfo, rpc::Empty());
  const auto latest = wallet.unary("GetLatestBlock", &Lightwallet::GetLatestBlock, rpc::ChainSpec());
  wallet.stream("GetSubtreeRoots", &Lightwallet::GetSubtreeRoots, roots(rpc::sapling, 0));
  wallet.stream("GetSubtreeRoots", &Lightwallet::GetSubtreeRoots, roots(rpc::orchard, 4));
  for (uint64_t start = 1000; start < 1300; start += 100) {
    wallet.unary("GetTreeState", &Lightwallet::GetTreeState, block_id(start - 1));
    wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange, block_range(start, start + 99));
  }
  for (uint64_t height = 1010; height < 1020; ++height) {
    wallet.unary("GetBlock", &Lightwallet::GetBlock, block_id(height));
  }
  wallet.stream("GetBlockRangeNullifiers", &Lightwallet::GetBlockRangeNullifiers, block_range(1100, 1120));
  for (uint64_t number = 0; number < 5; ++number) {
    wallet.unary("GetTransaction", &Lightwallet::GetTransaction, tx_filter(number));
  }
  wallet.stream("GetTaddressTxids", &Lightwallet::GetTaddressTxids, address_filter(1, 1000, 1300));
  wallet.unary("GetTaddressBalance", &Lightwallet::GetTaddressBalance, addresses(4));
  balance_stream(wallet, 4);
  wallet.unary("GetAddressUtxos", &Lightwallet::GetAddressUtxos, utxos_of(3, 1000));
  wallet.stream("GetAddressUtxosStream", &Lightwallet::GetAddressUtxosStream, utxos_of(3, 1000));
  wallet.stream("GetMempoolTx", &Lightwallet::GetMempoolTx, rpc::GetMempoolTxRequest());
  wallet.unary("GetBlock", &Lightwallet::GetBlock, block_id(latest.height() + 1));
  wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange, block_range(latest.height() - 4, latest.height() + 5));
  wallet.unary("GetLatestTreeState", &Lightwallet::GetLatestTreeState, rpc::Empty());
}

void run_server_stream(const std::string& address, Transcript& transcript) {
  Wallet wallet(address, transcript);
  wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange, block_range(7, 7));
  wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange, block_range(100, 400));
  wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange, block_range(400, 100));
  wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange, block_range(kLargeBlocksBegin, kLargeBlocksBegin + 40));
  wallet.stream("GetBlockRangeNullifiers", &Lightwallet::GetBlockRangeNullifiers, block_range(100, 200));
  wallet.stream("GetTaddressTransactions", &Lightwallet::GetTaddressTransactions, address_filter(1, 100, 500));
  wallet.stream("GetTaddressTransactions", &Lightwallet::GetTaddressTransactions, address_filter(1, 500, 100));
  wallet.stream("GetSubtreeRoots", &Lightwallet::GetSubtreeRoots, roots(rpc::orchard, 0));
  wallet.stream("GetSubtreeRoots", &Lightwallet::GetSubtreeRoots, roots(rpc::orchard, 1000));
  wallet.stream("GetAddressUtxosStream", &Lightwallet::GetAddressUtxosStream, utxos_of(3, 1));
  wallet.stream("GetMempoolTx", &Lightwallet::GetMempoolTx, rpc::GetMempoolTxRequest());
}

void run_client_stream(const std::string& address, Transcript& transcript) {
  Wallet wallet(address, transcript);
  for (const uint32_t count : {0u, 1u, 500u}) balance_stream(wallet, count);
}

}  // namespace ztape::peer
