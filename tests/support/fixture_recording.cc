#include "tests/support/fixture_recording.h"

#include <algorithm>
#include <exception>
#include <random>
#include <stdexcept>
#include <thread>

#include "tests/support/fixture.h"
#include "tests/support/proxy_process.h"
#include "tests/support/sockets.h"

namespace ztape::test {
namespace {

constexpr std::size_t kTinyBytes = 6000;

class Cutter {
 public:
  Cutter(Cuts cuts, uint32_t seed) : cuts_(cuts), random_(seed) {}
  std::size_t next(std::size_t sent_before, std::size_t left) {
    if (cuts_ == Cuts::as_recorded) return left;
    const bool tiny = cuts_ == Cuts::tiny && sent_before < kTinyBytes;
    return std::min(left, std::uniform_int_distribution<std::size_t>(1, tiny ? 7 : 20'000)(random_));
  }

 private:
  Cuts cuts_;
  std::minstd_rand random_;
};

struct Ends {
  Socket client;
  Socket server;
};

void play(const FixtureConnection& connection, Ends& ends, Cutter cutter) {
  std::size_t sent[2] = {0, 0};
  const auto& events = connection.chunks;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto direction = events[i].direction;
    Socket& from = direction == Direction::client_to_server ? ends.client : ends.server;
    Socket& to = direction == Direction::client_to_server ? ends.server : ends.client;
    if (events[i].eof) {
      from.shutdown_write();
      if (!to.receive_some().empty()) throw std::runtime_error("bytes came where an end was sent");
      continue;
    }
    std::size_t left = events[i].length;
    while (i + 1 < events.size() && events[i + 1].direction == direction && !events[i + 1].eof) {
      left += events[++i].length;
    }
    while (left > 0) {
      auto& before = sent[index(direction)];
      const auto piece = connection.bytes[index(direction)].substr(before, cutter.next(before, left));
      from.send(piece);
      if (to.receive(piece.size()) != piece) throw std::runtime_error("other bytes arrived than were sent");
      before += piece.size();
      left -= piece.size();
    }
  }
}

}  // namespace

void send_fixture(const std::string& fixture, const ProxyProcess& proxy, ListeningSocket& server, Cuts cuts,
                  uint32_t seed) {
  const auto connections = load_fixture(fixture);
  std::vector<Ends> ends;
  for (std::size_t i = 0; i < connections.size(); ++i) {
    auto client = Socket::connect(proxy.address());
    auto accepted = server.accept();  // before the next client connects: so the numbers agree
    client.set_nodelay();
    accepted.set_nodelay();
    ends.push_back({std::move(client), std::move(accepted)});
  }
  std::vector<std::exception_ptr> failures(connections.size());
  std::vector<std::thread> players;
  for (std::size_t i = 0; i < connections.size(); ++i) {
    players.emplace_back([&, i] {
      try {
        play(connections[i], ends[i], Cutter(cuts, seed + static_cast<uint32_t>(i)));
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  for (auto& player : players) player.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

FixtureRecording record_fixture(const std::string& fixture, const std::string& capture, Cuts cuts, uint32_t seed,
                                const std::vector<std::string>& more_options) {
  ListeningSocket listener;
  ProxyProcess proxy(listener.address(), capture, more_options);
  send_fixture(fixture, proxy, listener, cuts, seed);
  FixtureRecording recording;
  recording.status = proxy.stop();
  recording.capture = capture;
  recording.out = proxy.process().stdout_text();
  recording.err = proxy.process().stderr_text();
  return recording;
}

}  // namespace ztape::test
