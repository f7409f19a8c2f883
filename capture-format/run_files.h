// The files of a recording that goes on in a new file at a size: sync.000001.ztape, sync.000002.ztape, ... By name is
// by time. Looks into folders, keeps nothing open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/capture.pb.h"

namespace ztape {

// What stands before and behind the number: "a/sync." and ".ztape".
struct RunName {
  std::string before;
  std::string after;
  // "a/sync.000007.ztape"
  [[nodiscard]] std::string path(uint64_t number) const;
};

struct RunFile {
  uint64_t number = 0;
  std::string path;
};

// Of the name without a number, as it is given to `ztape proxy -w`: "a/sync.ztape", "a/sync".
RunName run_name(const std::string& path);

// All files of that name that are there, by number. None where the folder cannot be read.
std::vector<RunFile> files_of(const RunName& name);

// The file that goes on where the one at `path`, which begins with `start`, ends: the next that is there still.
// nullopt: there is none. `missing`: so many in between are gone (--keep).
struct NextOfRun {
  std::string path;
  uint64_t missing = 0;
};
std::optional<NextOfRun> next_of_run(const std::string& path, const capture::CaptureStart& start);

}  // namespace ztape
