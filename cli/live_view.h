// The live table of `ztape proxy`: redrawn in place, at most four times a second and only when it changed. While it is
// shown, the log's lines come above it. Lives on the loop's thread; log lines may come from any.
#pragma once

#include <functional>
#include <memory>

#include "cli/held_log.h"
#include "cli/terminal.h"
#include "net/loop.h"
#include "proxy/live_facts.h"

namespace ztape::cli {

class LiveView {
 public:
  // `log`: set where the log's lines would come to this terminal too; must outlive the view.
  LiveView(net::Loop& loop, std::unique_ptr<Terminal> terminal, HeldLog* log, std::function<proxy::LiveFacts()> look);
  // Takes the table away and gives the log its terminal back.
  ~LiveView();
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ztape::cli
