// The protos against the protocol's own list: names, numbers and types are the contract (lightwallet protocol v0.5.0).
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/darkside.pb.h"
#include "proto/service.pb.h"

namespace ztape {
namespace {

namespace pb = google::protobuf;

struct Expected {
  const char* name;
  const char* members;  // "height=1 uint64; hash=2 bytes", or "TRANSPARENT=1; ..." of an enum
};

constexpr Expected kMessages[] = {
    {"BlockID", "height=1 uint64; hash=2 bytes"},
    {"BlockRange", "start=1 BlockID; end=2 BlockID; poolTypes=3 repeated PoolType"},
    {"TxFilter", "block=1 BlockID; index=2 uint64; hash=3 bytes"},
    {"RawTransaction", "data=1 bytes; height=2 uint64"},
    {"SendResponse", "errorCode=1 int32; errorMessage=2 string"},
    {"ChainSpec", ""},
    {"Empty", ""},
    {"LightdInfo",
     "version=1 string; vendor=2 string; taddrSupport=3 bool; chainName=4 string; saplingActivationHeight=5 uint64; "
     "consensusBranchId=6 string; blockHeight=7 uint64; gitCommit=8 string; branch=9 string; buildDate=10 string; "
     "buildUser=11 string; estimatedHeight=12 uint64; zcashdBuild=13 string; zcashdSubversion=14 string; "
     "donationAddress=15 string; upgradeName=16 string; upgradeHeight=17 uint64; lightwalletProtocolVersion=18 string"},
    {"TransparentAddressBlockFilter", "address=1 string; range=2 BlockRange"},
    {"Duration", "intervalUs=1 int64"},
    {"PingResponse", "entry=1 int64; exit=2 int64"},
    {"Address", "address=1 string"},
    {"AddressList", "addresses=1 repeated string"},
    {"Balance", "valueZat=1 int64"},
    {"GetMempoolTxRequest", "exclude_txid_suffixes=1 repeated bytes; poolTypes=3 repeated PoolType"},
    {"TreeState",
     "network=1 string; height=2 uint64; hash=3 string; time=4 uint32; saplingTree=5 string; orchardTree=6 string; "
     "ironwoodTree=7 string"},
    {"GetSubtreeRootsArg", "startIndex=1 uint32; shieldedProtocol=2 ShieldedProtocol; maxEntries=3 uint32"},
    {"SubtreeRoot", "rootHash=2 bytes; completingBlockHash=3 bytes; completingBlockHeight=4 uint64"},
    {"GetAddressUtxosArg", "addresses=1 repeated string; startHeight=2 uint64; maxEntries=3 uint32"},
    {"GetAddressUtxosReply",
     "address=6 string; txid=1 bytes; index=2 int32; script=3 bytes; valueZat=4 int64; height=5 uint64"},
    {"GetAddressUtxosReplyList", "addressUtxos=1 repeated GetAddressUtxosReply"},
    {"ChainMetadata",
     "saplingCommitmentTreeSize=1 uint32; orchardCommitmentTreeSize=2 uint32; ironwoodCommitmentTreeSize=3 uint32"},
    {"CompactBlock",
     "height=2 uint64; hash=3 bytes; prevHash=4 bytes; time=5 uint32; header=6 bytes; vtx=7 repeated CompactTx; "
     "chainMetadata=8 ChainMetadata"},
    {"CompactTx",
     "index=1 uint64; txid=2 bytes; fee=3 uint32; spends=4 repeated CompactSaplingSpend; outputs=5 repeated "
     "CompactSaplingOutput; actions=6 repeated CompactOrchardAction; ironwoodActions=9 repeated CompactOrchardAction; "
     "vin=7 repeated CompactTxIn; vout=8 repeated TxOut"},
    {"CompactTxIn", "prevoutTxid=1 bytes; prevoutIndex=2 uint32"},
    {"TxOut", "value=1 uint64; scriptPubKey=2 bytes"},
    {"CompactSaplingSpend", "nf=1 bytes"},
    {"CompactSaplingOutput", "cmu=1 bytes; ephemeralKey=2 bytes; ciphertext=3 bytes"},
    {"CompactOrchardAction", "nullifier=1 bytes; cmx=2 bytes; ephemeralKey=3 bytes; ciphertext=4 bytes"},
    {"DarksideMetaState",
     "saplingActivation=1 int32; branchID=2 string; chainName=3 string; startSaplingCommitmentTreeSize=4 uint32; "
     "startOrchardCommitmentTreeSize=5 uint32; startIronwoodCommitmentTreeSize=6 uint32"},
    {"DarksideBlock", "block=1 string"},
    {"DarksideBlocksURL", "url=1 string"},
    {"DarksideTransactionsURL", "height=1 int32; url=2 string"},
    {"DarksideHeight", "height=1 int32"},
    {"DarksideEmptyBlocks", "height=1 int32; nonce=2 int32; count=3 int32"},
    {"DarksideSubtreeRoots",
     "shieldedProtocol=1 ShieldedProtocol; startIndex=2 uint32; subtreeRoots=3 repeated SubtreeRoot"},
    {"DarksideAddressTransaction", "address=1 string; data=2 bytes; height=3 uint64"},
};

constexpr Expected kEnums[] = {
    {"PoolType", "POOL_TYPE_INVALID=0; TRANSPARENT=1; SAPLING=2; ORCHARD=3; IRONWOOD=4"},
    {"ShieldedProtocol", "sapling=0; orchard=1; ironwood=2"},
};

std::string type_of(const pb::FieldDescriptor& field) {
  std::string type = field.is_repeated() ? "repeated " : "";
  if (field.message_type()) return type + field.message_type()->name();
  if (field.enum_type()) return type + field.enum_type()->name();
  return type + field.type_name();
}

TEST(LightwalletProto, MessagesHaveTheContractsFields) {
  (void)cash::z::wallet::sdk::rpc::DarksideHeight::descriptor();
  for (const auto& expected : kMessages) {
    const auto* message = pb::DescriptorPool::generated_pool()->FindMessageTypeByName(
        std::string("cash.z.wallet.sdk.rpc.") + expected.name);
    ASSERT_NE(message, nullptr) << expected.name;
    std::string members;
    for (int i = 0; i < message->field_count(); ++i) {
      const auto& field = *message->field(i);
      if (!members.empty()) members += "; ";
      members += field.name() + "=" + std::to_string(field.number()) + " " + type_of(field);
    }
    EXPECT_EQ(members, expected.members) << expected.name;
  }
}

TEST(LightwalletProto, EnumsHaveTheContractsValues) {
  for (const auto& expected : kEnums) {
    const auto* type =
        pb::DescriptorPool::generated_pool()->FindEnumTypeByName(std::string("cash.z.wallet.sdk.rpc.") + expected.name);
    ASSERT_NE(type, nullptr) << expected.name;
    std::string members;
    for (int i = 0; i < type->value_count(); ++i) {
      if (!members.empty()) members += "; ";
      members += type->value(i)->name() + "=" + std::to_string(type->value(i)->number());
    }
    EXPECT_EQ(members, expected.members) << expected.name;
  }
}

TEST(LightwalletProto, ReservesWhatOlderVersionsUsed) {
  EXPECT_TRUE(cash::z::wallet::sdk::rpc::CompactBlock::descriptor()->IsReservedNumber(1));
  EXPECT_TRUE(cash::z::wallet::sdk::rpc::GetMempoolTxRequest::descriptor()->IsReservedNumber(2));
}

}  // namespace
}  // namespace ztape
