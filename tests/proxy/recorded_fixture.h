// Feeds a fixture's connections to a RecordWriter, record by record, as the relays would.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "proxy/record_writer.h"
#include "tests/support/fixture.h"

namespace ztape::test {

// The records of all connections of a fixture, in the order of their times; connection N of it is N. A chunk of more
// than `longest` bytes comes in pieces.
std::vector<proxy::QueuedRecord> records_of(const std::vector<FixtureConnection>& connections,
                                            std::size_t longest = 65536);

// The calls of several files, by connection and stream: what the last file says of each, and so the most. As
// summary_of() in tests/support/calls.h has them.
using CallSummaries = std::map<std::pair<ConnectionId, uint32_t>, std::string>;
CallSummaries calls_of_files(const std::vector<std::string>& files);
CallSummaries calls_of(const std::vector<FixtureConnection>& connections);

// The bytes of each connection's directions in several files, one after another. Throws std::runtime_error where a
// chunk does not stand where the one before it ended.
std::map<std::pair<ConnectionId, int>, std::string> bytes_of_files(const std::vector<std::string>& files);

// All files of a run in a folder, by name.
std::vector<std::string> capture_files(const std::string& folder);

}  // namespace ztape::test
