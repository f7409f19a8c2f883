#include "tests/peer/scenario.h"

#include <string_view>

#include "tests/peer/metadata.h"

namespace ztape::peer {

namespace {

constexpr std::string_view kTls = "https://";

}  // namespace

std::shared_ptr<grpc::Channel> connect(const std::string& address, grpc::ChannelArguments arguments) {
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (address.starts_with(kTls)) {  // the CA is GRPC_DEFAULT_SSL_ROOTS_FILE_PATH's
    return grpc::CreateCustomChannel(address.substr(kTls.size()), grpc::SslCredentials({}), arguments);
  }
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

std::string path_of(const char* method) {
  return std::string("/") + rpc::CompactTxStreamer::service_full_name() + "/" + method;
}

rpc::BlockID block_id(uint64_t height) {
  rpc::BlockID id;
  id.set_height(height);
  return id;
}

rpc::BlockRange block_range(uint64_t start, uint64_t end) {
  rpc::BlockRange range;
  *range.mutable_start() = block_id(start);
  *range.mutable_end() = block_id(end);
  return range;
}

std::string address_text(uint32_t number) {
  return "tm" + random_hex(number, 16);
}

Wallet::Wallet(const std::string& address, Transcript& to, const grpc::ChannelArguments& arguments)
    : channel(connect(address, arguments)), stub(rpc::CompactTxStreamer::NewStub(channel)), transcript(to) {}

}  // namespace ztape::peer
