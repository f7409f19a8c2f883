// Messages in one line.
#include "replay/message_text.h"

#include <gtest/gtest.h>

#include "proto/service.pb.h"

namespace ztape::replay {
namespace {

namespace rpc = cash::z::wallet::sdk::rpc;

TEST(MessageText, ShowsNestedMessagesEnumsAndRepeatedFields) {
  rpc::BlockRange range;
  range.mutable_start()->set_height(1);
  range.mutable_end()->set_height(100);
  range.add_pooltypes(rpc::SAPLING);
  range.add_pooltypes(rpc::ORCHARD);
  EXPECT_EQ(short_text(rpc::BlockRange::descriptor(), range.SerializeAsString()),
            "{start: {height: 1}, end: {height: 100}, poolTypes: SAPLING, poolTypes: ORCHARD}");
}

TEST(MessageText, ShowsHashesAsPeopleReadThemAndOtherBytesAsTheyTravel) {
  rpc::TxFilter filter;
  filter.set_hash(std::string("\x01\x02\xff", 3));
  EXPECT_EQ(short_text(rpc::TxFilter::descriptor(), filter.SerializeAsString()), "{hash: ff0201}");
  rpc::RawTransaction transaction;
  transaction.set_data(std::string(40, '\x11'));
  EXPECT_EQ(short_text(rpc::RawTransaction::descriptor(), transaction.SerializeAsString()),
            "{data: " + std::string(64, '1') + "...}");
}

TEST(MessageText, EscapesWhatATerminalWouldObey) {
  rpc::Address address;
  address.set_address("t1\x1b[31m\"");
  EXPECT_EQ(short_text(rpc::Address::descriptor(), address.SerializeAsString()), R"({address: "t1\x1b[31m\""})");
}

TEST(MessageText, IsCutWhenTooLong) {
  rpc::AddressList list;
  for (int i = 0; i < 100; ++i) list.add_addresses("t1abcdefghijklmnopq");
  const auto text = short_text(rpc::AddressList::descriptor(), list.SerializeAsString(), 100);
  EXPECT_LT(text.size(), 160u);
  EXPECT_TRUE(text.ends_with(", ...}")) << text;
}

TEST(MessageText, ShowsBytesWhereTheTypeIsUnknownOrDoesNotFit) {
  EXPECT_EQ(short_text(nullptr, "ab"), "2 bytes 6162");
  EXPECT_EQ(short_text(nullptr, ""), "0 bytes");
  EXPECT_EQ(short_text(rpc::BlockID::descriptor(), "\x0a"), "1 bytes 0a");
}

TEST(MessageDistance, IsZeroForEqualAndGrowsWithTheNumbers) {
  const auto id = [](uint64_t height) {
    rpc::BlockID made;
    made.set_height(height);
    return made.SerializeAsString();
  };
  const auto* type = rpc::BlockID::descriptor();
  EXPECT_EQ(distance(type, id(5), id(5)), 0);
  EXPECT_LT(distance(type, id(100), id(101)), distance(type, id(100), id(200)));
  EXPECT_LT(distance(type, id(100), id(200)), distance(type, id(100), ""));
  EXPECT_LT(distance(nullptr, "abcdef", "abcdeg"), distance(nullptr, "abcdef", "uvwxyz"));
}

}  // namespace
}  // namespace ztape::replay
