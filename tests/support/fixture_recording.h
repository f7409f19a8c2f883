// Records a fixture anew: a test client and a test server send its bytes through `ztape proxy` in the order of
// connectionN.chunks.tsv, each piece only after the one before it has arrived, but cut elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/proxy_process.h"
#include "tests/support/sockets.h"

namespace ztape::test {

enum class Cuts {
  as_recorded,
  random,  // 1 byte to 20,000 bytes, chunks of one direction that follow each other joined before
  tiny,    // 1 to 7 bytes for the first 6,000 bytes of each direction, then random
};

struct FixtureRecording {
  std::string capture;  // the file
  int status = 0;       // of the proxy
  std::string out;      // its stdout
  std::string err;
};

// Sends all connections of the fixture through a proxy at once, whose upstream `server` is. Throws std::runtime_error
// where bytes do not arrive as they were sent.
void send_fixture(const std::string& fixture, const ProxyProcess& proxy, ListeningSocket& server,
                  Cuts cuts = Cuts::as_recorded, uint32_t seed = 1);

// All connections of the fixture go through one proxy at once; connection N is connection N of the capture. `capture`
// is the file to make. Throws std::runtime_error where bytes do not arrive as they were sent.
FixtureRecording record_fixture(const std::string& fixture, const std::string& capture, Cuts cuts = Cuts::as_recorded,
                                uint32_t seed = 1, const std::vector<std::string>& more_options = {});

}  // namespace ztape::test
