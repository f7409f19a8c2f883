// soak_load: wallets by grpc++ that come and go and do all that wallets do, until SIGTERM. Whatever answers come are
// compared with what they must be; that a call fails is expected, for the soak breaks things.
//
//   soak_load ADDRESS SEED WALLETS BYTES_PER_SECOND
//
// Prints a JSON line a second: calls, failed, wrong, bytes of messages.
#include <grpcpp/grpcpp.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "proto/service.grpc.pb.h"
#include "tests/peer/answers.h"
#include "tests/peer/metadata.h"
#include "tests/peer/peer.grpc.pb.h"

namespace ztape::peer {
namespace {

using Stub = rpc::CompactTxStreamer::Stub;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::atomic<bool> ending{false};
std::atomic<uint64_t> calls{0}, failed{0}, wrong{0}, bytes{0};

// Keeps all wallets together to so many bytes a second. What one call brings at once is waited for after it.
class Pace {
 public:
  explicit Pace(double bytes_per_second) : bytes_per_second_(bytes_per_second) {}
  void took(std::size_t count) {
    bytes += count;
    const std::chrono::duration<double> cost(static_cast<double>(count) / bytes_per_second_);
    Clock::time_point until;
    {
      const std::lock_guard lock(mutex_);
      free_at_ = std::max(free_at_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(cost);
      until = free_at_;
    }
    while (!ending && Clock::now() + milliseconds(50) < until) std::this_thread::sleep_for(milliseconds(20));
  }

 private:
  const double bytes_per_second_;
  std::mutex mutex_;
  Clock::time_point free_at_ = Clock::now();
};

class Wallet {
 public:
  Wallet(std::string address, uint64_t seed, Pace& pace) : address_(std::move(address)), random_(seed), pace_(pace) {}

  void run() {
    while (!ending) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
      arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
      arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
      arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
      arguments.SetMaxReceiveMessageSize(-1);
      channel_ = grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments);
      stub_ = rpc::CompactTxStreamer::NewStub(channel_);
      for (uint64_t left = 1 + below(12); left > 0 && !ending; --left) one_call();
    }
  }

 private:
  uint64_t below(uint64_t bound) { return random_() % bound; }

  // A call that hangs, because a fault made it so, ends.
  static void prepare(grpc::ClientContext& context, milliseconds time = milliseconds(15000)) {
    context.set_deadline(std::chrono::system_clock::now() + time);
  }

  void count(const grpc::Status& status, bool right) {
    ++calls;
    failed += !status.ok();
    wrong += !right;
  }

  void one_call() {
    switch (below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5: unary(); break;
      case 6:
      case 7:
      case 8: blocks(below(300'000) + 1, 1 + below(200)); break;
      case 9:
      case 10: blocks(kLargeBlocksBegin + below(5000), 1 + below(60)); break;
      case 11: huge(); break;
      case 12: balance(1 + below(600)); break;
      case 13:
      case 14: echo(); break;
      case 15: blocks(kLargeBlocksBegin + below(5000), 200, 1 + below(40)); break;                       // cancelled
      case 16: blocks(kLargeBlocksBegin + below(5000), 50, 0, milliseconds(below(40))); break;           // slowly read
      case 17: blocks(kLargeBlocksBegin + below(5000), 400, 0, {}, milliseconds(1 + below(60))); break;  // too late
      case 18: ping(); break;
      default: idle(); break;
    }
  }

  void unary() {
    for (uint64_t i = 1 + below(30); i > 0 && !ending; --i) {
      grpc::ClientContext context;
      prepare(context);
      rpc::BlockID id;
      id.set_height(1 + below(400'000));
      rpc::CompactBlock block;
      const auto status = stub_->GetBlock(&context, id, &block);
      count(status, !status.ok() || same(block, id.height()));
      pace_.took(block.ByteSizeLong());
    }
  }

  static bool same(const rpc::CompactBlock& block, uint64_t height) {
    return block.SerializeAsString() == compact_block(height, Fields::all).SerializeAsString();
  }

  void blocks(uint64_t start, uint64_t how_many, uint64_t cancel_after = 0, milliseconds pause = {},
              milliseconds deadline = milliseconds(15000)) {
    grpc::ClientContext context;
    prepare(context, deadline);
    rpc::BlockRange range;
    range.mutable_start()->set_height(start);
    range.mutable_end()->set_height(start + how_many - 1);
    const auto reader = stub_->GetBlockRange(&context, range);
    rpc::CompactBlock block;
    uint64_t got = 0;
    bool right = true;
    while (reader->Read(&block)) {
      right = right && (got % 4 != 0 || same(block, start + got));
      ++got;
      if (got == cancel_after || ending) context.TryCancel();
      if (pause.count() > 0) std::this_thread::sleep_for(pause);
      pace_.took(block.ByteSizeLong());
    }
    const auto status = reader->Finish();
    count(status, right && (!status.ok() || got == how_many));
  }

  void huge() {
    if (below(6) != 0) return unary();
    grpc::ClientContext context;
    prepare(context, milliseconds(60000));
    rpc::BlockID id;
    id.set_height(kHugeBlock);
    rpc::CompactBlock block;
    const auto status = stub_->GetBlock(&context, id, &block);
    count(status, !status.ok() || same(block, kHugeBlock));
    pace_.took(block.ByteSizeLong());
  }

  void balance(uint64_t how_many) {
    grpc::ClientContext context;
    prepare(context);
    rpc::Balance answer;
    const auto writer = stub_->GetTaddressBalanceStream(&context, &answer);
    int64_t sum = 0;
    for (uint64_t i = 0; i < how_many; ++i) {
      rpc::Address address;
      address.set_address("tm" + random_hex(i, 16));
      sum += balance_zat(address.address());
      if (!writer->Write(address)) break;
    }
    writer->WritesDone();
    const auto status = writer->Finish();
    count(status, !status.ok() || answer.valuezat() == sum);
    pace_.took(how_many * 36);
  }

  void echo() {
    grpc::ClientContext context;
    prepare(context);
    const auto stub = Echo::NewStub(channel_);
    const auto stream = stub->Both(&context);
    bool right = true;
    for (uint64_t i = 1 + below(40); i > 0 && !ending; --i) {
      EchoMessage message, back;
      message.set_number(static_cast<uint32_t>(i));
      message.set_payload(random_bytes(random_(), below(8) == 0 ? below(1 << 20) : below(4000)));
      if (!stream->Write(message) || !stream->Read(&back)) break;
      right = right && back.payload() == message.payload() && back.number() == message.number();
      pace_.took(2 * message.ByteSizeLong());
    }
    stream->WritesDone();
    count(stream->Finish(), right);
  }

  void ping() {
    grpc::ClientContext context;
    prepare(context, milliseconds(5 + below(200)));
    rpc::Duration asked;
    asked.set_intervalus(static_cast<int64_t>(below(300'000)));
    rpc::PingResponse answer;
    count(stub_->Ping(&context, asked, &answer), true);
  }

  void idle() {
    const auto until = Clock::now() + milliseconds(below(3000));
    while (!ending && Clock::now() < until) std::this_thread::sleep_for(milliseconds(50));
  }

  const std::string address_;
  std::mt19937_64 random_;
  Pace& pace_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Stub> stub_;
};

void tell() {
  std::printf("{\"calls\": %llu, \"failed\": %llu, \"wrong\": %llu, \"bytes\": %llu}\n",
              static_cast<unsigned long long>(calls), static_cast<unsigned long long>(failed),
              static_cast<unsigned long long>(wrong), static_cast<unsigned long long>(bytes));
  std::fflush(stdout);
}

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "Usage: soak_load ADDRESS SEED WALLETS BYTES_PER_SECOND\n");
    return 2;
  }
  // Before any thread is made, so that none of grpc's takes the signal.
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  const uint64_t seed = std::stoull(argv[2]);
  Pace pace(std::stod(argv[4]));
  std::vector<std::thread> wallets;
  for (uint64_t i = 0; i < std::stoull(argv[3]); ++i) {
    wallets.emplace_back([&, i] { Wallet(argv[1], mixed(seed + i), pace).run(); });
  }
  const timespec second{.tv_sec = 1, .tv_nsec = 0};
  while (sigtimedwait(&stop, nullptr, &second) < 0) tell();
  ending = true;
  for (auto& wallet : wallets) wallet.join();
  tell();
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ztape::peer

int main(int argc, char** argv) {
  return ztape::peer::main(argc, argv);
}
