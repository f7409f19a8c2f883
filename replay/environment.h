// The machine a measurement was made on, for reports.
#pragma once

#include "replay/report_model.h"

namespace ztape::replay {

// Kernel, CPU, congestion control; what cannot be found out stays empty. `version`, `capture` and the times are the
// caller's.
Environment this_machine();

}  // namespace ztape::replay
