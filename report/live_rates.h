// How fast the proxy's counts grow, over about the last two seconds.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "proto/words.h"
#include "proxy/live_facts.h"

namespace ztape::report {

class LiveRates {
 public:
  // Times must not go back.
  void add(const proxy::LiveFacts& facts);

  // Of the samples there are; 0 with one sample only.
  [[nodiscard]] double bytes_a_second(Direction direction) const;
  [[nodiscard]] double calls_a_second() const;
  [[nodiscard]] double calls_a_second(std::string_view path) const;

 private:
  struct Sample {
    MonotonicTime time;
    uint64_t bytes[2] = {0, 0};
    uint64_t calls = 0;
    std::map<std::string, uint64_t, std::less<>> calls_of;
  };
  [[nodiscard]] double seconds() const;

  std::deque<Sample> samples_;  // the oldest first
};

}  // namespace ztape::report
