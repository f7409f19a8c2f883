#include "proto/method_table.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <array>
#include <string>

#include "proto/darkside.pb.h"
#include "proto/service.pb.h"

namespace ztape {
namespace {

namespace pb = google::protobuf;

constexpr bool kReads = true;
constexpr bool kHasSideEffects = false;
constexpr bool kTip = true;
constexpr bool kFixed = false;

#define STREAMER "/cash.z.wallet.sdk.rpc.CompactTxStreamer/"
#define ROW(method, kind, reads_only, tip_dependent, long_lived, deprecated)                     \
  Method {                                                                                       \
    STREAMER method, method, MethodKind::kind, reads_only, tip_dependent, long_lived, deprecated \
  }

constexpr std::array kMethods{
    ROW("GetLatestBlock", unary, kReads, kTip, false, false),
    ROW("GetBlock", unary, kReads, kFixed, false, false),
    ROW("GetBlockNullifiers", unary, kReads, kFixed, false, true),
    ROW("GetBlockRange", server_stream, kReads, kFixed, false, false),
    ROW("GetBlockRangeNullifiers", server_stream, kReads, kFixed, false, true),
    ROW("GetTransaction", unary, kReads, kFixed, false, false),
    ROW("SendTransaction", unary, kHasSideEffects, kFixed, false, false),
    ROW("GetTaddressTxids", server_stream, kReads, kFixed, false, true),
    ROW("GetTaddressTransactions", server_stream, kReads, kFixed, false, false),
    ROW("GetTaddressBalance", unary, kReads, kTip, false, false),
    ROW("GetTaddressBalanceStream", client_stream, kReads, kTip, false, false),
    ROW("GetMempoolTx", server_stream, kReads, kTip, false, false),
    ROW("GetMempoolStream", server_stream, kReads, kTip, true, false),
    ROW("GetTreeState", unary, kReads, kFixed, false, false),
    ROW("GetLatestTreeState", unary, kReads, kTip, false, false),
    ROW("GetSubtreeRoots", server_stream, kReads, kFixed, false, false),
    ROW("GetAddressUtxos", unary, kReads, kTip, false, false),
    ROW("GetAddressUtxosStream", server_stream, kReads, kTip, false, false),
    ROW("GetLightdInfo", unary, kReads, kTip, false, false),
    ROW("Ping", unary, kReads, kTip, false, false),
};

#undef ROW
#undef STREAMER

const pb::MethodDescriptor* descriptor_of(std::string_view path) {
  // Naming both services' files links their descriptors in.
  cash::z::wallet::sdk::rpc::Empty::descriptor();
  cash::z::wallet::sdk::rpc::DarksideHeight::descriptor();
  if (!path.starts_with('/')) return nullptr;
  std::string full_name(path.substr(1));
  std::replace(full_name.begin(), full_name.end(), '/', '.');
  return pb::DescriptorPool::generated_pool()->FindMethodByName(full_name);
}

}  // namespace

std::string_view name(MethodKind kind) {
  switch (kind) {
    case MethodKind::unary: return "unary";
    case MethodKind::client_stream: return "client_stream";
    case MethodKind::server_stream: return "server_stream";
    case MethodKind::bidi_stream: return "bidi_stream";
  }
  return "";
}

std::span<const Method> methods() {
  return kMethods;
}

const Method* find_method(std::string_view path_or_name) {
  const auto found = std::find_if(kMethods.begin(), kMethods.end(), [&](const Method& method) {
    return method.path == path_or_name || method.name == path_or_name;
  });
  return found == kMethods.end() ? nullptr : &*found;
}

std::string_view short_name(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos || slash + 1 == path.size()) return path;
  return path.substr(slash + 1);
}

const pb::Descriptor* request_type(std::string_view path) {
  const auto* method = descriptor_of(path);
  return method ? method->input_type() : nullptr;
}

const pb::Descriptor* response_type(std::string_view path) {
  const auto* method = descriptor_of(path);
  return method ? method->output_type() : nullptr;
}

}  // namespace ztape
