// The scenarios of the peer's client, and what they are made of.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "proto/service.grpc.pb.h"
#include "tests/peer/peer.grpc.pb.h"
#include "tests/peer/transcript.h"

namespace ztape::peer {

namespace rpc = cash::z::wallet::sdk::rpc;
using Lightwallet = rpc::CompactTxStreamer::Stub;

// A channel is one connection, shared with no other.
std::shared_ptr<grpc::Channel> connect(const std::string& address, grpc::ChannelArguments arguments = {});

std::string path_of(const char* method);
rpc::BlockID block_id(uint64_t height);
rpc::BlockRange block_range(uint64_t start, uint64_t end);
// A transparent address by number; "" is none.
std::string address_text(uint32_t number);

// One wallet on one channel.
struct Wallet {
  Wallet(const std::string& address, Transcript& to, const grpc::ChannelArguments& arguments = {});

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<Lightwallet> stub;
  Transcript& transcript;
  std::function<void(grpc::ClientContext&)> prepare = [](grpc::ClientContext&) {};  // every context before its call

  template <typename Request, typename Response>
  Response unary(const char* method, grpc::Status (Lightwallet::*call)(grpc::ClientContext*, const Request&, Response*),
                 const Request& request) {
    grpc::ClientContext context;
    prepare(context);
    CallLog log(path_of(method));
    log.request(request);
    Response response;
    const auto status = (stub.get()->*call)(&context, request, &response);
    if (status.ok()) log.response(response);
    log.finish(status, context, transcript);
    return response;
  }

  // `on_message` gets each message's number from 1.
  template <typename Request, typename Response>
  void stream(
      const char* method,
      std::unique_ptr<grpc::ClientReader<Response>> (Lightwallet::*call)(grpc::ClientContext*, const Request&),
      const Request& request,
      const std::function<void(uint64_t, grpc::ClientContext&)>& on_message = [](uint64_t, auto&) {}) {
    grpc::ClientContext context;
    prepare(context);
    CallLog log(path_of(method));
    log.request(request);
    const auto reader = (stub.get()->*call)(&context, request);
    Response response;
    while (reader->Read(&response)) {
      log.response(response);
      on_message(log.responses().messages(), context);
    }
    const auto status = reader->Finish();
    log.finish(status, context, transcript);
  }
};

struct Scenario {
  const char* name;
  const char* summary;
  void (*run)(const std::string& address, Transcript& transcript);
};

// clang-format off
#define ZTAPE_PEER_SCENARIOS(X)                                                                \
  X(unary,          "every unary method, good answers and errors")                             \
  X(session,        "what a wallet reads, one call after the other: unary and streams")        \
  X(server_stream,  "streams of many kinds, empty ones too")                                   \
  X(client_stream,  "the client sends 0, 1 and 500 messages, then gets one answer")            \
  X(bidi,           "messages both ways: in turn, and all at once")                            \
  X(many_messages,  "10,000 messages in one stream")                                           \
  X(slow_reader,    "64 MiB in one stream to a client that reads slowly")                      \
  X(huge_message,   "64 MiB in one message")                                                   \
  X(parallel,       "4 channels, 4 threads on each")                                           \
  X(cancel,         "the client leaves in the middle of a stream, or of its own")              \
  X(deadline,       "the deadline passes while the server is busy")                            \
  X(error_before,   "an error before the first message")                                       \
  X(error_middle,   "an error after some messages")                                            \
  X(large_metadata, "6 KiB and 40 KiB of headers each way, binary ones too")                   \
  X(gzip,           "compressed messages both ways")
// clang-format on

#define ZTAPE_DECLARE(name, summary) void run_##name(const std::string& address, Transcript& transcript);
ZTAPE_PEER_SCENARIOS(ZTAPE_DECLARE)
#undef ZTAPE_DECLARE

}  // namespace ztape::peer
