// The answers of the peer's server. Each follows from what was asked alone, so that two servers agree and a replay
// finds what the recording has.
#pragma once

#include <cstdint>
#include <string>

#include "proto/service.pb.h"

namespace ztape::peer {

namespace rpc = cash::z::wallet::sdk::rpc;

enum class Fields { all, nullifiers };

rpc::CompactBlock compact_block(uint64_t height, Fields fields);
// Transaction `index` of the block; seeded by both.
rpc::CompactTx compact_tx(uint64_t height, uint64_t index, Fields fields);
std::string block_hash(uint64_t height);
rpc::BlockID tip();
rpc::LightdInfo lightd_info();
rpc::TreeState tree_state(uint64_t height);
rpc::RawTransaction raw_transaction(uint64_t seed, uint64_t height);
rpc::SubtreeRoot subtree_root(rpc::ShieldedProtocol pool, uint32_t index);
rpc::GetAddressUtxosReply utxo(const std::string& address, uint32_t index, uint64_t height);
int64_t balance_zat(const std::string& address);
// For answers that follow from bytes: a transaction id, an address.
uint64_t seed_of(const std::string& text);

}  // namespace ztape::peer
