#include "report/process_figures.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace ztape::report {

ProcessFigures process_figures() {
  ProcessFigures figures;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    figures.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  std::ifstream memory("/proc/self/statm");
  uint64_t size_pages = 0, resident_pages = 0;
  if (memory >> size_pages >> resident_pages) {
    figures.resident_bytes = resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  std::error_code error;
  std::filesystem::directory_iterator descriptors("/proc/self/fd", error);
  if (!error) {
    uint64_t count = 0;
    for (; !error && descriptors != std::filesystem::directory_iterator(); descriptors.increment(error)) ++count;
    if (!error) figures.open_descriptors = count > 0 ? count - 1 : 0;  // without the one that reads the folder
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) figures.most_descriptors = limit.rlim_cur;
  return figures;
}

}  // namespace ztape::report
