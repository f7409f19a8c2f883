#include "cli/held_log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <iterator>
#include <mutex>
#include <utility>

#include "report/text.h"

namespace ztape::cli {
namespace {

constexpr std::size_t kMostLines = 1000;  // that wait for a terminal that takes nothing

const char* style_of(spdlog::level::level_enum level) {
  if (level >= spdlog::level::err) return "\x1b[1;31m";
  return level == spdlog::level::warn ? "\x1b[1;33m" : "\x1b[32m";
}

}  // namespace

class HeldLog::Gate final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  Gate(std::vector<spdlog::sink_ptr> before, bool color) : through_(std::move(before)), color_(color) {}

  void hold(std::function<void()> on_line) {
    const std::lock_guard lock(mutex_);
    on_line_ = std::move(on_line);
    holding_ = true;
  }

  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    if (dropped_ > 0) lines_.push_back("... and " + report::counted(std::exchange(dropped_, 0), "line") + " more");
    return std::exchange(lines_, {});
  }

  void let_go() {
    const std::lock_guard lock(mutex_);
    holding_ = false;
    on_line_ = nullptr;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!holding_) {
      for (const auto& next : through_) next->log(message);
      return;
    }
    if (lines_.size() >= kMostLines) {
      ++dropped_;
    } else {
      const auto level = spdlog::level::to_string_view(message.level);
      std::string line(level.data(), level.size());
      if (color_) line = style_of(message.level) + line + "\x1b[0m";
      line += ": ";
      line.append(message.payload.data(), message.payload.size());
      lines_.push_back(std::move(line));
    }
    on_line_();
  }
  void flush_() override {
    if (!holding_) {
      for (const auto& next : through_) next->flush();
    }
  }

  const std::vector<spdlog::sink_ptr> through_;
  const bool color_;
  bool holding_ = false;
  std::function<void()> on_line_;
  std::vector<std::string> lines_;
  uint64_t dropped_ = 0;
};

HeldLog::HeldLog(bool color) {
  auto& sinks = spdlog::default_logger()->sinks();
  gate_ = std::make_shared<Gate>(std::exchange(sinks, {}), color);
  sinks.push_back(gate_);
}

HeldLog::~HeldLog() {
  gate_->let_go();
}

void HeldLog::hold(std::function<void()> on_line) {
  gate_->hold(std::move(on_line));
}

std::vector<std::string> HeldLog::take() {
  return gate_->take();
}

std::vector<std::string> HeldLog::let_go() {
  gate_->let_go();
  return gate_->take();
}

}  // namespace ztape::cli
