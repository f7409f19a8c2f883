// Messages both ways at once, and many calls at once.
#include <thread>
#include <vector>

#include "tests/peer/metadata.h"
#include "tests/peer/scenario.h"

namespace ztape::peer {
namespace {

constexpr char kEchoPath[] = "/ztape.peer.Echo/Both";

// Mostly small, some larger than an HTTP/2 frame.
EchoMessage echo_message(uint32_t number) {
  EchoMessage message;
  message.set_number(number);
  message.set_payload(random_bytes(number, number % 25 == 24 ? 40'000 : number % 200));
  return message;
}

// Sends message n+1 only once message n has come back.
void in_turn(Echo::Stub& stub, uint32_t count, Transcript& transcript) {
  grpc::ClientContext context;
  CallLog log(kEchoPath);
  const auto stream = stub.Both(&context);
  for (uint32_t number = 0; number < count; ++number) {
    const auto message = echo_message(number);
    log.request(message);
    EchoMessage back;
    if (!stream->Write(message) || !stream->Read(&back)) break;
    log.response(back);
  }
  stream->WritesDone();
  const auto status = stream->Finish();
  log.finish(status, context, transcript);
}

void all_at_once(Echo::Stub& stub, uint32_t count, Transcript& transcript) {
  grpc::ClientContext context;
  CallLog log(kEchoPath);
  for (uint32_t number = 0; number < count; ++number) log.request(echo_message(number));
  const auto stream = stub.Both(&context);
  std::thread writer([&] {
    for (uint32_t number = 0; number < count && stream->Write(echo_message(number)); ++number) {
    }
    stream->WritesDone();
  });
  EchoMessage back;
  while (stream->Read(&back)) log.response(back);
  writer.join();
  const auto status = stream->Finish();
  log.finish(status, context, transcript);
}

void one_thread(Wallet& wallet, uint64_t number) {
  const uint64_t start = 1000 * (number + 1);
  for (uint64_t i = 0; i < 5; ++i) {
    for (uint64_t k = 0; k < 5; ++k) {
      wallet.unary("GetBlock", &Lightwallet::GetBlock, block_id(start + 10 * i + k));
    }
    wallet.stream("GetBlockRange", &Lightwallet::GetBlockRange, block_range(start + 50 * i, start + 50 * i + 49));
  }
  wallet.unary("GetBlock", &Lightwallet::GetBlock, block_id(kTipHeight + start));
}

}  // namespace

void run_bidi(const std::string& address, Transcript& transcript) {
  const auto stub = Echo::NewStub(connect(address));
  in_turn(*stub, 0, transcript);
  in_turn(*stub, 200, transcript);
  all_at_once(*stub, 1000, transcript);
}

void run_parallel(const std::string& address, Transcript& transcript) {
  constexpr std::size_t kChannels = 4;
  constexpr std::size_t kThreads = 4;
  std::vector<Transcript> transcripts(kChannels * kThreads);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kChannels; ++i) {
    const Wallet first(address, transcripts[0]);
    for (std::size_t k = 0; k < kThreads; ++k) {
      threads.emplace_back([channel = first.channel, &address, number = i * kThreads + k, &transcripts] {
        Wallet wallet(address, transcripts[number]);
        wallet.channel = channel;
        wallet.stub = rpc::CompactTxStreamer::NewStub(channel);
        one_thread(wallet, number);
      });
    }
  }
  for (auto& thread : threads) thread.join();
  for (const auto& one : transcripts) transcript.add(one);
}

}  // namespace ztape::peer
