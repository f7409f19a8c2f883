// The table against the service's own descriptor: every method has a row that says of it what the proto says.
#include "proto/method_table.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "proto/service.pb.h"

namespace ztape {
namespace {

const google::protobuf::ServiceDescriptor& service() {
  return *cash::z::wallet::sdk::rpc::Empty::descriptor()->file()->FindServiceByName("CompactTxStreamer");
}

MethodKind kind_of(const google::protobuf::MethodDescriptor& method) {
  if (method.client_streaming()) {
    return method.server_streaming() ? MethodKind::bidi_stream : MethodKind::client_stream;
  }
  return method.server_streaming() ? MethodKind::server_stream : MethodKind::unary;
}

TEST(MethodTable, HasEveryMethodOfTheServiceAndNoOther) {
  ASSERT_EQ(service().method_count(), 20);
  EXPECT_EQ(methods().size(), 20U);
  for (int i = 0; i < service().method_count(); ++i) {
    const auto& method = *service().method(i);
    const auto* row = find_method(method.name());
    ASSERT_NE(row, nullptr) << method.name();
    EXPECT_EQ(row->path, "/cash.z.wallet.sdk.rpc.CompactTxStreamer/" + method.name());
    EXPECT_EQ(row->kind, kind_of(method)) << method.name();
    EXPECT_EQ(row->deprecated, method.options().deprecated()) << method.name();
    EXPECT_EQ(find_method(row->path), row);
    EXPECT_EQ(request_type(row->path), method.input_type());
    EXPECT_EQ(response_type(row->path), method.output_type());
  }
}

TEST(MethodTable, OnlySendTransactionHasASideEffect) {
  for (const auto& method : methods()) EXPECT_EQ(method.reads_only, method.name != "SendTransaction") << method.name;
}

TEST(MethodTable, NamesWhatTheTipChanges) {
  const std::set<std::string_view> tip_dependent{"GetLatestBlock",           "GetLightdInfo",
                                                 "GetLatestTreeState",       "GetMempoolTx",
                                                 "GetMempoolStream",         "GetAddressUtxos",
                                                 "GetAddressUtxosStream",    "GetTaddressBalance",
                                                 "GetTaddressBalanceStream", "Ping"};
  for (const auto& method : methods())
    EXPECT_EQ(method.tip_dependent, tip_dependent.contains(method.name)) << method.name;
}

TEST(MethodTable, DoesNotKnowTheTestModeNorOtherServices) {
  EXPECT_EQ(find_method("/cash.z.wallet.sdk.rpc.DarksideStreamer/Reset"), nullptr);
  EXPECT_EQ(find_method("Reset"), nullptr);
  EXPECT_EQ(find_method("/other.Service/GetBlock"), nullptr);
  EXPECT_NE(request_type("/cash.z.wallet.sdk.rpc.DarksideStreamer/Reset"), nullptr);  // but its messages can be read
  EXPECT_EQ(request_type("/other.Service/GetBlock"), nullptr);
}

TEST(MethodTable, ShortNames) {
  EXPECT_EQ(short_name("/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetBlock"), "GetBlock");
  EXPECT_EQ(short_name("GetBlock"), "GetBlock");
  EXPECT_EQ(short_name(""), "");
  EXPECT_EQ(short_name("/"), "/");
}

}  // namespace
}  // namespace ztape
