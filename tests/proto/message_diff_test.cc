#include "proto/message_diff.h"

#include <gtest/gtest.h>

#include "proto/service.pb.h"

namespace ztape {
namespace {

namespace rpc = cash::z::wallet::sdk::rpc;
using Differences = std::vector<FieldDifference>;

template <typename M>
Differences diff(const M& left, const M& right) {
  return diff_messages(M::descriptor(), left.SerializeAsString(), right.SerializeAsString());
}

const FieldValue kNothing{};

FieldValue number(uint64_t value) {
  return value;
}

FieldValue text(const char* value) {
  return std::string(value);
}

TEST(MessageDiff, EqualBytesHaveNoDifference) {
  rpc::LightdInfo left;
  left.set_vendor("a");
  EXPECT_TRUE(diff(left, left).empty());
}

TEST(MessageDiff, NamesScalarsAndTakesAnAbsentOneForItsDefault) {
  rpc::LightdInfo left;
  left.set_version("0.10.2");
  left.set_taddrsupport(true);
  left.set_upgradeheight(18446744073709551615u);
  rpc::LightdInfo right;
  right.set_version("0.1.0");
  EXPECT_EQ(diff(left, right), (Differences{{"version", text("0.10.2"), text("0.1.0")},
                                            {"taddrSupport", true, false},
                                            {"upgradeHeight", number(18446744073709551615u), number(0)}}));
}

TEST(MessageDiff, KeepsSigned64BitNumbers) {
  rpc::Balance left;
  left.set_valuezat(-1);
  rpc::Balance right;
  right.set_valuezat(1016132812500);
  EXPECT_EQ(diff(left, right), (Differences{{"valueZat", int64_t{-1}, int64_t{1016132812500}}}));
}

TEST(MessageDiff, FindsAFieldDeepInsideAndShowsHashesReversed) {
  rpc::CompactBlock left;
  left.set_hash(std::string("\x01\x02\x03", 3));
  auto* tx = left.add_vtx();
  tx->add_outputs()->set_cmu("ab");
  tx->add_vin()->set_prevouttxid("\x0a\x0b");
  auto right = left;
  right.set_hash(std::string("\x01\x02\x04", 3));
  right.mutable_vtx(0)->mutable_outputs(0)->set_cmu("ac");
  right.mutable_vtx(0)->mutable_vin(0)->set_prevouttxid("\x0b\x0a");
  EXPECT_EQ(diff(left, right), (Differences{{"hash", text("030201"), text("040201")},
                                            {"vtx[0].outputs[0].cmu", text("6162"), text("6163")},
                                            {"vtx[0].vin[0].prevoutTxid", text("0b0a"), text("0a0b")}}));
}

TEST(MessageDiff, TellsTheCountAndEachFieldOfAMissingElement) {
  rpc::CompactBlock left;
  left.add_vtx()->set_index(1);
  auto right = left;
  right.add_vtx()->set_fee(7);
  EXPECT_EQ(diff(left, right), (Differences{{"vtx[]", number(1), number(2)}, {"vtx[1].fee", kNothing, number(7)}}));
}

TEST(MessageDiff, TellsMissingElementsOfARepeatedScalar) {
  rpc::AddressList left;
  left.add_addresses("t1");
  left.add_addresses("t2");
  rpc::AddressList right;
  right.add_addresses("t1");
  EXPECT_EQ(diff(left, right),
            (Differences{{"addresses[]", number(2), number(1)}, {"addresses[1]", text("t2"), kNothing}}));
}

TEST(MessageDiff, TellsAnAbsentMessageFromAnEmptyOne) {
  rpc::CompactBlock left;
  left.mutable_chainmetadata();
  rpc::CompactBlock right;
  EXPECT_EQ(diff(left, right), (Differences{{"chainMetadata", text("present"), kNothing}}));
}

TEST(MessageDiff, ShowsEnumsByNameAndUnknownEnumNumbersAsNumbers) {
  rpc::BlockRange left;
  left.add_pooltypes(rpc::SAPLING);
  rpc::BlockRange right;
  right.add_pooltypes(static_cast<rpc::PoolType>(77));
  EXPECT_EQ(diff(left, right), (Differences{{"poolTypes[0]", text("SAPLING"), int64_t{77}}}));
}

TEST(MessageDiff, NamesUnknownFieldsByNumber) {
  // CompactBlock.protoVersion = 1 of protocol v0.4.1 is reserved now.
  const std::string left("\x08\x01\x10\x05", 4);
  const std::string right("\x10\x05", 2);
  EXPECT_EQ(diff_messages(rpc::CompactBlock::descriptor(), left, right), (Differences{{"#1", number(1), kNothing}}));
}

TEST(MessageDiff, FallsBackToTheFirstByteWhereAMessageDoesNotParse) {
  const std::string left("\x10\x05\x1a\x01\x61", 5);
  const std::string right("\x10\x05\x1a\xff\x61", 5);
  EXPECT_EQ(diff_messages(rpc::CompactBlock::descriptor(), left, right),
            (Differences{{"bytes[3]", text("0161"), text("ff61")}}));
}

TEST(MessageDiff, TellsAnotherEncodingOfTheSameFieldsByItsBytes) {
  const std::string absent;
  const std::string explicit_default("\x10\x00", 2);
  EXPECT_EQ(diff_messages(rpc::BlockID::descriptor(), absent, std::string("\x08\x00", 2)),
            (Differences{{"bytes[0]", text(""), text("0800")}}));
  EXPECT_FALSE(diff_messages(rpc::CompactBlock::descriptor(), absent, explicit_default).empty());
}

TEST(MessageDiff, WithoutATypeTellsTheFirstByte) {
  EXPECT_EQ(diff_messages(nullptr, "abc", "abd"), (Differences{{"bytes[2]", text("63"), text("64")}}));
  EXPECT_EQ(diff_messages(nullptr, "ab", "abd"), (Differences{{"bytes[2]", text(""), text("64")}}));
}

TEST(MessageDiff, IsBounded) {
  rpc::AddressList left;
  rpc::AddressList right;
  for (std::size_t i = 0; i < 3 * kMaxFieldDifferences; ++i) {
    left.add_addresses("l");
    right.add_addresses("r");
  }
  EXPECT_EQ(diff(left, right).size(), kMaxFieldDifferences);
}

TEST(MessageDiff, PathsWithoutIndexesAreTheSameForEveryElement) {
  EXPECT_EQ(path_without_indexes("vtx[12].outputs[0].cmu"), "vtx[].outputs[].cmu");
  EXPECT_EQ(path_without_indexes("vtx[]"), "vtx[]");
  EXPECT_EQ(path_without_indexes("version"), "version");
}

}  // namespace
}  // namespace ztape
