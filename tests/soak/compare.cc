// soak_compare: proves that captures have what two witnesses saw. Reads them with zstd and protobuf alone, none of the
// program's own code.
//
//   soak_compare FRONT_LOG BACK_LOG CAPTURE...        (the captures in the order of their recording)
//
// Of each direction of each connection: what the witness behind the proxy received is the beginning of what was
// recorded, and that is the beginning of what the witness before the proxy sent; the three are equal where both
// witnesses saw a clean end. Prints one JSON object. 0: so it is; 1: not, and what the first differences are; 2: usage.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "proto/capture.pb.h"

namespace {

namespace capture = ztape::capture;
constexpr uint64_t kCheckpointBytes = 4096;

struct Seen {
  uint64_t number = 0;
  uint64_t sent = 0, sent_hash = 0, received = 0, received_hash = 0;
  std::string end;
  std::vector<uint64_t> checkpoints;
  bool matched = false;
  [[nodiscard]] bool clean() const { return end == "clean"; }
};

// By the address at the proxy's side; several where a port was used again, in the order of their opening.
using Log = std::unordered_map<std::string, std::deque<Seen>>;

Log read_log(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  Log log;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> words;
    std::istringstream text(line);
    for (std::string word; std::getline(text, word, '\t');) words.push_back(word);
    if (words.size() != 8) throw std::runtime_error(path + ": not a line of a witness: " + line);
    Seen seen;
    seen.number = std::stoull(words[0]);
    seen.sent = std::stoull(words[2]);
    seen.sent_hash = std::stoull(words[3], nullptr, 16);
    seen.received = std::stoull(words[4]);
    seen.received_hash = std::stoull(words[5], nullptr, 16);
    seen.end = words[6];
    if (words[7] != "-") {
      std::istringstream hashes(words[7]);
      for (std::string hash; std::getline(hashes, hash, ',');) {
        seen.checkpoints.push_back(std::stoull(hash, nullptr, 16));
      }
    }
    log[words[1]].push_back(std::move(seen));
  }
  // The log is in the order of the ends.
  for (auto& [address, list] : log) {
    std::sort(list.begin(), list.end(), [](const Seen& a, const Seen& b) { return a.number < b.number; });
  }
  return log;
}

struct Direction {
  XXH3_state_t* state = XXH3_createState();
  uint64_t bytes = 0;
  uint64_t checkpoint = 0;  // hash of the bytes up to the last multiple of kCheckpointBytes
  uint64_t at_received = 0;
  bool gap = false;   // the recorder says that it lost some: nothing more can be said of the rest
  uint64_t want = 0;  // bytes that the receiving witness has
  Direction() { XXH3_64bits_reset(state); }
  ~Direction() { XXH3_freeState(state); }
  Direction(const Direction&) = delete;
  Direction& operator=(const Direction&) = delete;

  void add(const std::string& chunk, bool checkpoints) {
    const char* at = chunk.data();
    std::size_t left = chunk.size();
    while (left > 0) {
      std::size_t piece = left;
      if (checkpoints) piece = std::min<std::size_t>(piece, kCheckpointBytes - bytes % kCheckpointBytes);
      if (bytes < want) piece = std::min<std::size_t>(piece, want - bytes);
      XXH3_64bits_update(state, at, piece);
      bytes += piece;
      at += piece;
      left -= piece;
      if (checkpoints && bytes % kCheckpointBytes == 0) checkpoint = hash();
      if (bytes == want) at_received = hash();
    }
  }
  [[nodiscard]] uint64_t hash() const { return XXH3_64bits_digest(state); }
};

struct Connection {
  Seen* front = nullptr;
  Seen* back = nullptr;
  std::array<Direction, 2> directions;
};

class Comparison {
 public:
  Comparison(Log front, Log back) : front_(std::move(front)), back_(std::move(back)) {}

  void read(const std::string& path) {
    const std::string command = "zstd -dcq -- '" + path + "'";
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    if (!pipe) throw std::runtime_error("cannot run zstd");
    std::string bytes;
    capture::Record record;
    while (next_length(*pipe, bytes)) {
      if (std::fread(bytes.data(), 1, bytes.size(), pipe.get()) != bytes.size() || !record.ParseFromString(bytes)) {
        throw std::runtime_error(path + ": a record cannot be read");
      }
      take(record);
    }
  }

  void finish() {
    while (!connections_.empty()) close(connections_.begin()->first);
    for (auto* log : {&front_, &back_}) {
      for (const auto& [address, list] : *log) {
        for (const auto& seen : list) {
          if (seen.matched) continue;
          if (seen.sent == 0 && seen.received == 0) {
            ++empty_;
          } else if (seen.received > 0 || seen.clean()) {
            lost_bytes_ += seen.received;
            differ((log == &front_ ? "front " : "back ") + address + ": is not in the captures; " + seen.end);
          } else {
            // Sent into a connection that the proxy, for all the witness knows, never had: reset before it was taken.
            ++unseen_;
          }
        }
      }
    }
  }

  [[nodiscard]] bool same() const { return differences_ == 0 && gaps_ == 0; }

  void print() const {
    std::printf(
        "{\"connections\": %llu, \"exact\": %llu, \"cut_off\": %llu, \"empty\": %llu, \"reset_before_taken\": %llu, "
        "\"bytes\": %llu, \"proven_bytes\": %llu, \"lost_bytes\": %llu, \"gaps\": %llu, \"differences\": %llu}\n",
        ull(connections_seen_), ull(exact_), ull(connections_seen_ - exact_), ull(empty_), ull(unseen_), ull(bytes_),
        ull(proven_bytes_), ull(lost_bytes_), ull(gaps_), ull(differences_));
  }

 private:
  static unsigned long long ull(uint64_t value) { return value; }

  static bool next_length(FILE& file, std::string& bytes) {
    uint64_t length = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const int byte = std::getc(&file);
      if (byte == EOF) return false;
      length |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    if (length > (64u << 20)) throw std::runtime_error("a record of " + std::to_string(length) + " bytes");
    bytes.resize(length);
    return true;
  }

  Seen* match(Log& log, const std::string& address) {
    const auto found = log.find(address);
    if (found == log.end()) return nullptr;
    for (auto& seen : found->second) {
      if (seen.matched) continue;
      seen.matched = true;
      return &seen;
    }
    return nullptr;
  }

  void take(const capture::Record& record) {
    if (record.has_connection_open()) {
      const auto& open = record.connection_open();
      if (connections_.contains(open.connection())) return;  // once more at the head of a new file
      ++connections_seen_;
      auto& connection = connections_[open.connection()];
      connection.front = match(front_, open.downstream_peer());
      if (!open.upstream_local().empty()) connection.back = match(back_, open.upstream_local());
      if (connection.front == nullptr) {
        differ("connection " + std::to_string(open.connection()) + " of " + open.downstream_peer() +
               ": no witness before the proxy saw it");
      }
      if (connection.back != nullptr) connection.directions[0].want = connection.back->received;
      if (connection.front != nullptr) connection.directions[1].want = connection.front->received;
    } else if (record.has_chunk()) {
      const auto& chunk = record.chunk();
      const auto found = connections_.find(chunk.connection());
      if (found == connections_.end()) {
        differ("a chunk of connection " + std::to_string(chunk.connection()) + ", which is not open");
        return;
      }
      auto& connection = found->second;
      auto& direction = connection.directions[chunk.direction() == capture::SERVER_TO_CLIENT];
      if (direction.gap) return;
      if (chunk.offset() != direction.bytes) {
        differ("connection " + std::to_string(chunk.connection()) + ": a chunk at " + std::to_string(chunk.offset()) +
               ", not at " + std::to_string(direction.bytes));
        return;
      }
      const auto* sender = chunk.direction() == capture::SERVER_TO_CLIENT ? connection.back : connection.front;
      direction.add(chunk.bytes(), sender != nullptr && !sender->clean());
    } else if (record.has_gap()) {
      ++gaps_;
      lost_bytes_ += record.gap().bytes();
      if (const auto found = connections_.find(record.gap().connection()); found != connections_.end()) {
        found->second.directions[record.gap().direction() == capture::SERVER_TO_CLIENT].gap = true;
      }
      std::fprintf(stderr, "soak_compare: a gap of %llu bytes: %s\n", ull(record.gap().bytes()),
                   record.gap().reason().c_str());
    } else if (record.has_connection_close()) {
      close(record.connection_close().connection());
    }
  }

  void close(uint64_t id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const auto& connection = found->second;
    const bool clean = connection.front != nullptr && connection.back != nullptr && connection.front->clean() &&
                       connection.back->clean();
    exact_ += clean;
    for (const int number : {0, 1}) {
      const auto& direction = connection.directions[static_cast<std::size_t>(number)];
      const std::string name = "connection " + std::to_string(id) + (number == 0 ? " to the server" : " to the client");
      bytes_ += direction.bytes;
      if (direction.gap) continue;
      compare(name, direction, number == 0 ? connection.front : connection.back,
              number == 0 ? connection.back : connection.front, clean);
    }
    connections_.erase(found);
  }

  void compare(const std::string& name, const Direction& direction, const Seen* from, const Seen* to, bool clean) {
    const auto recorded = std::to_string(direction.bytes) + " bytes are recorded, ";
    if (to != nullptr && to->received > direction.bytes) {
      lost_bytes_ += to->received - direction.bytes;
      differ(name + ": " + recorded + std::to_string(to->received) + " were delivered");
    } else if (to != nullptr && to->received > 0 && direction.at_received != to->received_hash) {
      differ(name + ": what was delivered is not what was recorded");
    } else if (to != nullptr) {
      proven_bytes_ += to->received;
    }
    const uint64_t sent = from == nullptr ? 0 : from->sent;
    if (direction.bytes > sent) {
      differ(name + ": " + recorded + std::to_string(sent) + " were sent");
    } else if (direction.bytes == sent) {
      if (sent > 0 && direction.hash() != from->sent_hash) differ(name + ": what was recorded is not what was sent");
    } else if (clean) {
      lost_bytes_ += sent - direction.bytes;
      differ(name + ": " + recorded + std::to_string(sent) + " were sent, and the end was clean");
    } else if (const auto at = direction.bytes / kCheckpointBytes; at > 0) {
      if (at > from->checkpoints.size() || from->checkpoints[at - 1] != direction.checkpoint) {
        differ(name + ": what was recorded is not the beginning of what was sent");
      }
    }
    if (clean && to != nullptr && to->received != direction.bytes) {
      differ(name + ": " + recorded + std::to_string(to->received) + " were delivered, and the end was clean");
    }
  }

  void differ(const std::string& line) {
    if (++differences_ <= 20) std::fprintf(stderr, "soak_compare: %s\n", line.c_str());
  }

  Log front_, back_;
  std::map<uint64_t, Connection> connections_;
  uint64_t connections_seen_ = 0, exact_ = 0, empty_ = 0, unseen_ = 0;
  uint64_t bytes_ = 0, proven_bytes_ = 0, lost_bytes_ = 0, gaps_ = 0, differences_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "Usage: soak_compare FRONT_LOG BACK_LOG CAPTURE...\n");
    return 2;
  }
  try {
    Comparison comparison(read_log(argv[1]), read_log(argv[2]));
    for (int i = 3; i < argc; ++i) comparison.read(argv[i]);
    comparison.finish();
    comparison.print();
    return comparison.same() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "soak_compare: %s\n", error.what());
    return 2;
  }
}
