// The log, with a gate in it: while somebody else has the terminal, its lines wait here for them to show.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ztape::cli {

class HeldLog {
 public:
  // Puts itself before the sinks of spdlog's default logger, for good; before other threads log.
  explicit HeldLog(bool color);
  ~HeldLog();
  HeldLog(const HeldLog&) = delete;
  HeldLog& operator=(const HeldLog&) = delete;

  // From now on lines wait; `on_line` is called for each, on the thread that logs, under a lock: it must not log.
  void hold(std::function<void()> on_line);
  // The lines that wait, without line ends, with their level in front. Of very many the last are left out and counted.
  std::vector<std::string> take();
  // Later lines go where they used to. Returns what waits.
  std::vector<std::string> let_go();

 private:
  class Gate;
  std::shared_ptr<Gate> gate_;
};

}  // namespace ztape::cli
