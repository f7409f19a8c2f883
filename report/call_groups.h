// Calls put together by what they have in common: `ztape show --by`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "http2/recorded_connection.h"

namespace ztape::report {

enum class GroupKey { method, user_agent, status };

class CallGroups {
 public:
  // In the order in which their columns stand.
  explicit CallGroups(std::vector<GroupKey> keys) : keys_(std::move(keys)) {}

  void add(const http2::Call& call);
  void add(const http2::RecordedCapture& capture);

  // The groups with the most calls first. `width`: Table::text.
  [[nodiscard]] std::string page(const capture::CaptureStart& start, std::size_t width) const;
  // One document: an array.
  [[nodiscard]] std::string json(const capture::CaptureStart& start) const;

 private:
  struct Group {
    uint64_t calls = 0;
    uint64_t errors = 0;  // http2::is_error()
    uint64_t sent_bytes = 0;
    uint64_t received_bytes = 0;
    uint64_t messages = 0;  // both ways
    bool deprecated = false;
    std::vector<int64_t> durations_ns;  // of the calls that have ended
    int64_t first_ns = -1;              // start of the first and the last call
    int64_t last_ns = -1;
  };
  using Row = std::pair<const std::vector<std::string>, Group>;
  [[nodiscard]] std::vector<const Row*> sorted() const;

  std::vector<GroupKey> keys_;
  std::map<std::vector<std::string>, Group> groups_;
};

}  // namespace ztape::report
