// The server's two services.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "proto/service.grpc.pb.h"
#include "tests/peer/answers.h"
#include "tests/peer/change.h"
#include "tests/peer/peer.grpc.pb.h"

namespace ztape::peer {

struct ServerOptions {
  std::chrono::microseconds delay{0};  // before the first answer of each call
  uint64_t die_after = 0;              // so many calls are taken, the next one ends the process; 0: never
};

// What happens at the start of every call of either service. Any thread.
class Gate {
 public:
  explicit Gate(ServerOptions options) : options_(options) {}
  void enter(grpc::ServerContext& context);

 private:
  const ServerOptions options_;
  std::atomic<uint64_t> calls_{0};
};

class LightwalletService final : public rpc::CompactTxStreamer::Service {
 public:
  LightwalletService(Gate& gate, Changes& changes) : gate_(gate), changes_(changes) {}

 private:
  using Context = grpc::ServerContext*;
  using Status = grpc::Status;
  template <typename Message>
  using Writer = grpc::ServerWriter<Message>*;

  Status GetLatestBlock(Context, const rpc::ChainSpec*, rpc::BlockID*) override;
  Status GetBlock(Context, const rpc::BlockID*, rpc::CompactBlock*) override;
  Status GetBlockNullifiers(Context, const rpc::BlockID*, rpc::CompactBlock*) override;
  Status GetBlockRange(Context, const rpc::BlockRange*, Writer<rpc::CompactBlock>) override;
  Status GetBlockRangeNullifiers(Context, const rpc::BlockRange*, Writer<rpc::CompactBlock>) override;
  Status GetTransaction(Context, const rpc::TxFilter*, rpc::RawTransaction*) override;
  Status SendTransaction(Context, const rpc::RawTransaction*, rpc::SendResponse*) override;
  Status GetTaddressTxids(Context, const rpc::TransparentAddressBlockFilter*, Writer<rpc::RawTransaction>) override;
  Status GetTaddressTransactions(Context, const rpc::TransparentAddressBlockFilter*,
                                 Writer<rpc::RawTransaction>) override;
  Status GetTaddressBalance(Context, const rpc::AddressList*, rpc::Balance*) override;
  Status GetTaddressBalanceStream(Context, grpc::ServerReader<rpc::Address>*, rpc::Balance*) override;
  Status GetMempoolTx(Context, const rpc::GetMempoolTxRequest*, Writer<rpc::CompactTx>) override;
  // Three transactions, then nothing more until the client leaves.
  Status GetMempoolStream(Context, const rpc::Empty*, Writer<rpc::RawTransaction>) override;
  Status GetTreeState(Context, const rpc::BlockID*, rpc::TreeState*) override;
  Status GetLatestTreeState(Context, const rpc::Empty*, rpc::TreeState*) override;
  Status GetSubtreeRoots(Context, const rpc::GetSubtreeRootsArg*, Writer<rpc::SubtreeRoot>) override;
  Status GetAddressUtxos(Context, const rpc::GetAddressUtxosArg*, rpc::GetAddressUtxosReplyList*) override;
  Status GetAddressUtxosStream(Context, const rpc::GetAddressUtxosArg*, Writer<rpc::GetAddressUtxosReply>) override;
  Status GetLightdInfo(Context, const rpc::Empty*, rpc::LightdInfo*) override;
  // Answers after `intervalUs`: the slow method.
  Status Ping(Context, const rpc::Duration*, rpc::PingResponse*) override;

  template <typename Message>
  Status answer(Message&& from, Message* to);
  // False: the client has gone.
  template <typename Message>
  bool send(Message&& message, Writer<Message> writer);
  Status block(const rpc::BlockID& id, Fields fields, rpc::CompactBlock* to);
  Status blocks(const rpc::BlockRange& range, Fields fields, Writer<rpc::CompactBlock> writer);
  Status transactions(const rpc::TransparentAddressBlockFilter& filter, Writer<rpc::RawTransaction> writer);

  Gate& gate_;
  Changes& changes_;
};

class EchoService final : public Echo::Service {
 public:
  explicit EchoService(Gate& gate) : gate_(gate) {}

 private:
  grpc::Status Both(grpc::ServerContext* context, grpc::ServerReaderWriter<EchoMessage, EchoMessage>* stream) override;
  Gate& gate_;
};

}  // namespace ztape::peer
