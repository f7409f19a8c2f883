#include "report/lag_line.h"

#include "report/text.h"

namespace ztape::report {

std::string lag_line(const Histogram& turns, int64_t max_ns) {
  if (turns.count() == 0) return "";
  std::string text = "event loop lag: max " + duration(max_ns);
  if (const auto p99 = turns.quantile_ns(.99)) text += ", p99 " + duration(*p99);
  return text + "\n";
}

}  // namespace ztape::report
