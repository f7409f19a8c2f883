#include "tests/peer/slow_path.h"

#include <chrono>
#include <stdexcept>

namespace ztape::test {
namespace {

constexpr std::size_t kBeforeStall = 1024 * 1024;

// To the end of `from`. A connection that breaks shows in what the client prints.
template <typename OnBytes>
void pass(Socket& from, Socket& to, const OnBytes& on_bytes) {
  try {
    for (std::size_t total = 0;;) {
      const auto bytes = from.receive_some();
      if (bytes.empty()) break;
      to.send(bytes);
      on_bytes(total, bytes.size());
      total += bytes.size();
    }
    to.shutdown_write();
  } catch (const std::runtime_error&) {
    to.reset();
  }
}

}  // namespace

SlowPath::SlowPath(std::string upstream) : upstream_(std::move(upstream)), thread_([this] { carry(); }) {}

SlowPath::~SlowPath() {
  thread_.join();
}

void SlowPath::carry() {
  auto client = listener_.accept();
  auto server = Socket::connect(upstream_);
  std::thread requests([&] { pass(client, server, [](std::size_t, std::size_t) {}); });
  pass(server, client, [](std::size_t before, std::size_t size) {
    const bool stall = before < kBeforeStall && before + size >= kBeforeStall;
    std::this_thread::sleep_for(stall ? std::chrono::milliseconds(1000) : std::chrono::milliseconds(1));
  });
  requests.join();
}

}  // namespace ztape::test
