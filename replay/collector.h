// Takes in how every call went and judges the answers, round by round. No sockets, no clock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "replay/report_model.h"
#include "replay/wallet.h"

namespace ztape::replay {

class Collector {
 public:
  // `reference`: the target whose answers are right; nullopt: the recording's are. `plan` must outlive the collector.
  Collector(const Plan& plan, const std::vector<Target>& targets, std::optional<std::size_t> reference);

  // A call of a measured round.
  void call_over(std::size_t target, uint64_t wallet, std::size_t session, CallResult&& result);

  // Every target has played the round, or can play no more: compares the n-th answer with the n-th.
  void end_round();

  // Of the load, which the engine sees.
  TargetResult& target(std::size_t index) { return targets_[index]; }

  // Calls that a run left out beyond the plan's skipped ones.
  void add_skipped(const std::string& method, const std::string& reason, uint64_t calls);

  // Fills targets, differences, skipped, coverage, the reference, the verdict and its reasons (those given in
  // `incomplete` are kept).
  void finish(ReplayReport& report);

 private:
  struct Slot {
    std::size_t session = 0;
    uint32_t call = 0;
    std::vector<std::unique_ptr<ReplayedAnswer>> answers;  // by target; nullptr: failed, or not played
    std::vector<bool> played;                              // by target
  };

  MethodResult& method_of(std::size_t target, const std::string& method);
  void judge(const Slot& slot);
  void judge_by_recording(const Slot& slot, const PlannedCall& planned);
  void judge_by_target(const Slot& slot, const PlannedCall& planned);
  void add_difference(const Slot& slot, std::string reference, std::size_t target, AnswerDifference difference);
  void group_differences(ReplayReport& report) const;
  void cover(ReplayReport& report) const;
  void decide(ReplayReport& report) const;

  const Plan& plan_;
  std::optional<std::size_t> reference_;
  std::vector<TargetResult> targets_;
  std::map<std::pair<uint64_t, uint32_t>, Slot> round_;  // by wallet and call
  std::set<std::pair<std::size_t, uint32_t>> sent_;      // session and call
  std::map<std::tuple<std::string, std::string, std::size_t, uint32_t>, DifferingCall> differing_;
  std::map<std::pair<std::string, std::string>, uint64_t> skipped_;  // reason and method
};

}  // namespace ztape::replay
