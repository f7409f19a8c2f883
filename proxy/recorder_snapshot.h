// What the recorder's thread tells now and then of its work: small, and never changed once it is handed out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proxy/call_counts.h"
#include "proxy/loss.h"

namespace ztape::proxy {

struct RecorderSnapshot {
  uint64_t calls = 0;
  std::vector<MethodFigures> methods;  // by path
  std::map<CallCounts::Key, Outcome> outcomes;
  Loss loss;                // as far as the recorder's thread has come
  Loss loss_of_gaps;        // the part of it that Gap records of the queue made
  std::string file;         // the newest one's path
  uint64_t files = 0;       // how many there were
  uint64_t file_bytes = 0;  // in all of them
  int compression_level = 0;
  std::string error;  // why the file cannot be written any more, or ""
};

// All of the recorder as of now.
struct RecorderStatus {
  std::size_t queue_bytes = 0;
  std::size_t queue_limit_bytes = 0;
  Loss loss;                                          // what still waits in the queue as a Gap is counted too
  std::shared_ptr<const RecorderSnapshot> of_thread;  // never nullptr
};

}  // namespace ztape::proxy
