// What ztape knows of each RPC of the lightwallet protocol beyond its types: may it be replayed, can its answer change
// while nothing is wrong. One row a method; a method that is not here is never replayed unasked.
#pragma once

#include <span>
#include <string_view>

namespace google::protobuf {
class Descriptor;
}

namespace ztape {

enum class MethodKind { unary, client_stream, server_stream, bidi_stream };

// "unary", "client_stream", ...
std::string_view name(MethodKind kind);

struct Method {
  std::string_view path;  // "/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetBlock"
  std::string_view name;  // "GetBlock"
  MethodKind kind;
  bool reads_only;     // safe to send again: no side effect on the network or the server
  bool tip_dependent;  // the right answer changes with the chain's tip or the mempool
  bool long_lived;     // stays open until a block is mined: never waited for
  bool deprecated;
};

std::span<const Method> methods();

// By full path, or by short name ("GetBlock"). nullptr: unknown.
const Method* find_method(std::string_view path_or_name);

// "GetBlock" of "/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetBlock"; the whole text when nothing follows a '/'.
std::string_view short_name(std::string_view path);

// The message types of a path, out of the linked descriptors. nullptr: unknown path.
const google::protobuf::Descriptor* request_type(std::string_view path);
const google::protobuf::Descriptor* response_type(std::string_view path);

}  // namespace ztape
