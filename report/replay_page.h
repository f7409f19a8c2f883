// A replay's report as a page for a terminal.
#pragma once

#include <string>

#include "replay/report_model.h"

namespace ztape::report {

// Ends with the verdict line.
std::string replay_page(const replay::ReplayReport& report);

}  // namespace ztape::report
