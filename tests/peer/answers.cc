#include "tests/peer/answers.h"

#include "tests/peer/metadata.h"

namespace ztape::peer {
namespace {

// Kinds of answers have seeds of their own.
enum Salt : uint64_t { kHash = 1, kHeader, kTx, kSpend, kOutput, kAction, kTree, kRaw, kRoot, kUtxo, kBalance };

uint64_t seed(Salt salt, uint64_t a, uint64_t b = 0) {
  return mixed(mixed(mixed(salt) + a) + b);
}

}  // namespace

std::string block_hash(uint64_t height) {
  return random_bytes(seed(kHash, height), 32);
}

rpc::CompactTx compact_tx(uint64_t height, uint64_t index, Fields fields) {
  const uint64_t own = seed(kTx, height, index);
  rpc::CompactTx tx;
  tx.set_index(index);
  tx.set_txid(random_bytes(own, 32));
  if (fields == Fields::all) tx.set_fee(static_cast<uint32_t>(1000 + own % 9000));
  for (uint64_t i = 0; i < own % 3; ++i) tx.add_spends()->set_nf(random_bytes(seed(kSpend, own, i), 32));
  for (uint64_t i = 0; i < (own >> 8) % 3; ++i) {
    auto* action = tx.add_actions();
    const uint64_t bytes = seed(kAction, own, i);
    action->set_nullifier(random_bytes(bytes, 32));
    if (fields == Fields::nullifiers) continue;
    action->set_cmx(random_bytes(bytes + 1, 32));
    action->set_ephemeralkey(random_bytes(bytes + 2, 32));
    action->set_ciphertext(random_bytes(bytes + 3, 52));
  }
  if (fields == Fields::nullifiers) return tx;
  for (uint64_t i = 0; i < 1 + (own >> 16) % 2; ++i) {
    auto* output = tx.add_outputs();
    const uint64_t bytes = seed(kOutput, own, i);
    output->set_cmu(random_bytes(bytes, 32));
    output->set_ephemeralkey(random_bytes(bytes + 1, 32));
    output->set_ciphertext(random_bytes(bytes + 2, 52));
  }
  return tx;
}

rpc::CompactBlock compact_block(uint64_t height, Fields fields) {
  rpc::CompactBlock block;
  block.set_height(height);
  block.set_hash(block_hash(height));
  block.set_prevhash(block_hash(height - 1));
  block.set_time(static_cast<uint32_t>(1'477'000'000 + height * 75));
  if (height >= kLargeBlocksBegin && height < kLargeBlocksEnd) {
    block.set_header(random_bytes(seed(kHeader, height), kLargeHeaderBytes));
  }
  if (height == kHugeBlock) block.set_header(random_bytes(seed(kHeader, height), kHugeHeaderBytes));
  for (uint64_t i = 0; i < seed(kHeader, height) % 4; ++i) *block.add_vtx() = compact_tx(height, i, fields);
  auto* metadata = block.mutable_chainmetadata();
  metadata->set_saplingcommitmenttreesize(static_cast<uint32_t>(height * 2));
  metadata->set_orchardcommitmenttreesize(static_cast<uint32_t>(height));
  return block;
}

rpc::BlockID tip() {
  rpc::BlockID id;
  id.set_height(kTipHeight);
  id.set_hash(block_hash(kTipHeight));
  return id;
}

rpc::LightdInfo lightd_info() {
  rpc::LightdInfo answer;
  answer.set_version("0.0.1");
  answer.set_vendor("ztape peer");
  answer.set_taddrsupport(true);
  answer.set_chainname("regtest");
  answer.set_saplingactivationheight(1);
  answer.set_consensusbranchid("c8e71055");
  answer.set_blockheight(kTipHeight);
  answer.set_estimatedheight(kTipHeight);
  answer.set_gitcommit("0000000000000000000000000000000000000000");
  answer.set_builddate("2026-01-01");
  answer.set_lightwalletprotocolversion("v0.5.0");
  return answer;
}

rpc::TreeState tree_state(uint64_t height) {
  rpc::TreeState state;
  state.set_network("regtest");
  state.set_height(height);
  const auto hash = block_hash(height);
  state.set_hash(hex({hash.rbegin(), hash.rend()}));  // as people read it: reversed
  state.set_time(static_cast<uint32_t>(1'477'000'000 + height * 75));
  state.set_saplingtree(random_hex(seed(kTree, height), 300));
  state.set_orchardtree(random_hex(seed(kTree, height, 1), 400));
  return state;
}

rpc::RawTransaction raw_transaction(uint64_t asked, uint64_t height) {
  const uint64_t own = seed(kRaw, asked);
  rpc::RawTransaction transaction;
  transaction.set_data(random_bytes(own, 200 + own % 3000));
  transaction.set_height(height);
  return transaction;
}

rpc::SubtreeRoot subtree_root(rpc::ShieldedProtocol pool, uint32_t index) {
  rpc::SubtreeRoot root;
  root.set_roothash(random_bytes(seed(kRoot, pool, index), 32));
  const uint64_t height = 1000ull * (index + 1);
  root.set_completingblockhash(block_hash(height));
  root.set_completingblockheight(height);
  return root;
}

rpc::GetAddressUtxosReply utxo(const std::string& address, uint32_t index, uint64_t height) {
  const uint64_t own = seed(kUtxo, seed_of(address), index);
  rpc::GetAddressUtxosReply reply;
  reply.set_address(address);
  reply.set_txid(random_bytes(own, 32));
  reply.set_index(static_cast<int32_t>(index));
  reply.set_script(random_bytes(own + 1, 25));
  reply.set_valuezat(static_cast<int64_t>(own % 100'000'000));
  reply.set_height(height + index);
  return reply;
}

int64_t balance_zat(const std::string& address) {
  return static_cast<int64_t>(seed(kBalance, seed_of(address)) % 1'000'000'000);
}

uint64_t seed_of(const std::string& text) {
  uint64_t value = text.size();
  for (const char byte : text) value = mixed(value ^ static_cast<uint8_t>(byte));
  return value;
}

}  // namespace ztape::peer
