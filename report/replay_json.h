// A replay's report as JSON: the document of docs/report.md.
#pragma once

#include <string>

#include "replay/report_model.h"

namespace ztape::report {

std::string replay_json(const replay::ReplayReport& report);

}  // namespace ztape::report
