#include "tests/peer/service.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "tests/peer/answers.h"
#include "tests/peer/metadata.h"

namespace ztape::peer {
namespace {

using grpc::Status;
using grpc::StatusCode;

constexpr uint32_t kSubtreeCount = 12;
constexpr uint32_t kUtxosOfAddress = 3;

// False: the client has gone before the time was over.
bool pause(grpc::ServerContext& context, std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!context.IsCancelled()) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return true;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, std::chrono::milliseconds(5)));
  }
  return false;
}

Status above_tip(StatusCode code, uint64_t height) {
  return {code, "height " + std::to_string(height) + " is above the tip " + std::to_string(kTipHeight)};
}

// As many of an address' outputs as were asked for.
std::vector<rpc::GetAddressUtxosReply> utxos(const rpc::GetAddressUtxosArg& asked) {
  std::vector<rpc::GetAddressUtxosReply> replies;
  for (const auto& address : asked.addresses()) {
    for (uint32_t i = 0; i < kUtxosOfAddress; ++i) {
      if (asked.maxentries() != 0 && replies.size() == asked.maxentries()) return replies;
      replies.push_back(utxo(address, i, asked.startheight()));
    }
  }
  return replies;
}

}  // namespace

void Gate::enter(grpc::ServerContext& context) {
  if (options_.die_after != 0 && ++calls_ > options_.die_after) _exit(1);
  const auto& metadata = context.client_metadata();
  if (metadata.contains(kCompress)) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  for (const auto& [name, value] : metadata) {
    if (!name.starts_with(kEchoPrefix)) continue;
    const std::string key(name.data(), name.size());
    const std::string text(value.data(), value.size());
    context.AddInitialMetadata(key, text);
    context.AddTrailingMetadata(kTrailerPrefix + key.substr(sizeof(kEchoPrefix) - 1), text);
  }
  if (options_.delay.count() > 0) pause(context, options_.delay);
}

template <typename Message>
Status LightwalletService::answer(Message&& from, Message* to) {
  *to = std::forward<Message>(from);
  changes_.apply(*to);
  return Status::OK;
}

template <typename Message>
bool LightwalletService::send(Message&& message, Writer<Message> writer) {
  changes_.apply(message);
  return writer->Write(message);
}

Status LightwalletService::block(const rpc::BlockID& id, Fields fields, rpc::CompactBlock* to) {
  if (id.height() > kTipHeight) return above_tip(StatusCode::NOT_FOUND, id.height());
  return answer(compact_block(id.height(), fields), to);
}

Status LightwalletService::blocks(const rpc::BlockRange& range, Fields fields, Writer<rpc::CompactBlock> writer) {
  const uint64_t start = range.start().height();
  const uint64_t end = range.end().height();
  for (uint64_t height = start;; height += start <= end ? 1 : -1) {
    if (height > kTipHeight) return above_tip(StatusCode::OUT_OF_RANGE, height);
    if (!send(compact_block(height, fields), writer)) return {StatusCode::CANCELLED, "the client has gone"};
    if (height == end) return Status::OK;
  }
}

Status LightwalletService::transactions(const rpc::TransparentAddressBlockFilter& filter,
                                        Writer<rpc::RawTransaction> writer) {
  // One in ten blocks has one.
  const uint64_t seed = seed_of(filter.address());
  const uint64_t end = std::min(filter.range().end().height(), kTipHeight);
  for (uint64_t height = filter.range().start().height(); height <= end; ++height) {
    if (mixed(seed + height) % 10 == 0 && !send(raw_transaction(seed + height, height), writer)) break;
  }
  return Status::OK;
}

Status LightwalletService::GetLatestBlock(Context context, const rpc::ChainSpec*, rpc::BlockID* to) {
  gate_.enter(*context);
  return answer(tip(), to);
}

Status LightwalletService::GetBlock(Context context, const rpc::BlockID* id, rpc::CompactBlock* to) {
  gate_.enter(*context);
  return block(*id, Fields::all, to);
}

Status LightwalletService::GetBlockNullifiers(Context context, const rpc::BlockID* id, rpc::CompactBlock* to) {
  gate_.enter(*context);
  return block(*id, Fields::nullifiers, to);
}

Status LightwalletService::GetBlockRange(Context context, const rpc::BlockRange* range,
                                         Writer<rpc::CompactBlock> writer) {
  gate_.enter(*context);
  return blocks(*range, Fields::all, writer);
}

Status LightwalletService::GetBlockRangeNullifiers(Context context, const rpc::BlockRange* range,
                                                   Writer<rpc::CompactBlock> writer) {
  gate_.enter(*context);
  return blocks(*range, Fields::nullifiers, writer);
}

Status LightwalletService::GetTransaction(Context context, const rpc::TxFilter* filter, rpc::RawTransaction* to) {
  gate_.enter(*context);
  // A text that has to be percent-encoded on the wire.
  if (filter->hash().size() != 32) return {StatusCode::INVALID_ARGUMENT, "100 % of txids have 32 bytes – größer\n"};
  return answer(raw_transaction(seed_of(filter->hash()), 1 + seed_of(filter->hash()) % kTipHeight), to);
}

Status LightwalletService::SendTransaction(Context context, const rpc::RawTransaction* transaction,
                                           rpc::SendResponse* to) {
  gate_.enter(*context);
  to->set_errorcode(transaction->data().empty() ? -25 : 0);
  to->set_errormessage(transaction->data().empty() ? "no transaction" : random_hex(seed_of(transaction->data()), 32));
  changes_.apply(*to);
  return Status::OK;
}

Status LightwalletService::GetTaddressTxids(Context context, const rpc::TransparentAddressBlockFilter* filter,
                                            Writer<rpc::RawTransaction> writer) {
  gate_.enter(*context);
  return transactions(*filter, writer);
}

Status LightwalletService::GetTaddressTransactions(Context context, const rpc::TransparentAddressBlockFilter* filter,
                                                   Writer<rpc::RawTransaction> writer) {
  gate_.enter(*context);
  return transactions(*filter, writer);
}

Status LightwalletService::GetTaddressBalance(Context context, const rpc::AddressList* list, rpc::Balance* to) {
  gate_.enter(*context);
  int64_t sum = 0;
  for (const auto& address : list->addresses()) sum += balance_zat(address);
  to->set_valuezat(sum);
  changes_.apply(*to);
  return Status::OK;
}

Status LightwalletService::GetTaddressBalanceStream(Context context, grpc::ServerReader<rpc::Address>* reader,
                                                    rpc::Balance* to) {
  gate_.enter(*context);
  int64_t sum = 0;
  rpc::Address address;
  while (reader->Read(&address)) sum += balance_zat(address.address());
  to->set_valuezat(sum);
  changes_.apply(*to);
  return Status::OK;
}

Status LightwalletService::GetMempoolTx(Context context, const rpc::GetMempoolTxRequest* request,
                                        Writer<rpc::CompactTx> writer) {
  gate_.enter(*context);
  for (uint64_t i = 0; i < 5; ++i) {
    auto tx = compact_tx(kTipHeight + 1, i, Fields::all);
    const bool known = std::ranges::any_of(request->exclude_txid_suffixes(),
                                           [&](const std::string& end) { return tx.txid().ends_with(end); });
    if (!known && !send(std::move(tx), writer)) break;
  }
  return Status::OK;
}

Status LightwalletService::GetMempoolStream(Context context, const rpc::Empty*, Writer<rpc::RawTransaction> writer) {
  gate_.enter(*context);
  for (uint64_t i = 0; i < 3; ++i) {
    if (!send(raw_transaction(kTipHeight + 1 + i, 0), writer)) break;
  }
  pause(*context, std::chrono::hours(1));
  return Status::OK;
}

Status LightwalletService::GetTreeState(Context context, const rpc::BlockID* id, rpc::TreeState* to) {
  gate_.enter(*context);
  if (id->height() > kTipHeight) return above_tip(StatusCode::NOT_FOUND, id->height());
  return answer(tree_state(id->height()), to);
}

Status LightwalletService::GetLatestTreeState(Context context, const rpc::Empty*, rpc::TreeState* to) {
  gate_.enter(*context);
  return answer(tree_state(kTipHeight), to);
}

Status LightwalletService::GetSubtreeRoots(Context context, const rpc::GetSubtreeRootsArg* asked,
                                           Writer<rpc::SubtreeRoot> writer) {
  gate_.enter(*context);
  uint32_t left = asked->maxentries() == 0 ? kSubtreeCount : asked->maxentries();
  for (uint32_t i = asked->startindex(); i < kSubtreeCount && left > 0; ++i, --left) {
    if (!send(subtree_root(asked->shieldedprotocol(), i), writer)) break;
  }
  return Status::OK;
}

Status LightwalletService::GetAddressUtxos(Context context, const rpc::GetAddressUtxosArg* asked,
                                           rpc::GetAddressUtxosReplyList* to) {
  gate_.enter(*context);
  for (auto& reply : utxos(*asked)) *to->add_addressutxos() = std::move(reply);
  changes_.apply(*to);
  return Status::OK;
}

Status LightwalletService::GetAddressUtxosStream(Context context, const rpc::GetAddressUtxosArg* asked,
                                                 Writer<rpc::GetAddressUtxosReply> writer) {
  gate_.enter(*context);
  for (auto& reply : utxos(*asked)) {
    if (!send(std::move(reply), writer)) break;
  }
  return Status::OK;
}

Status LightwalletService::GetLightdInfo(Context context, const rpc::Empty*, rpc::LightdInfo* to) {
  gate_.enter(*context);
  return answer(lightd_info(), to);
}

Status LightwalletService::Ping(Context context, const rpc::Duration* asked, rpc::PingResponse* to) {
  gate_.enter(*context);
  if (!pause(*context, std::chrono::microseconds(asked->intervalus()))) {
    return {StatusCode::CANCELLED, "the client has gone"};
  }
  to->set_entry(asked->intervalus());
  to->set_exit(asked->intervalus());
  changes_.apply(*to);
  return Status::OK;
}

Status EchoService::Both(grpc::ServerContext* context, grpc::ServerReaderWriter<EchoMessage, EchoMessage>* stream) {
  gate_.enter(*context);
  EchoMessage message;
  while (stream->Read(&message)) {
    if (!stream->Write(message)) break;
  }
  return Status::OK;
}

}  // namespace ztape::peer
