// Runs a replay: rounds, targets interleaved, virtual wallets; collects a report.
//
// One loop, its thread. Each round every target plays the same wallets, one target after the other; the order of the
// targets is turned round after round (A B, B A, ...), so that drift cancels. A target where no wallet could connect in
// a whole round is left out of the rounds after it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "http2/recorded_connection.h"
#include "net/loop.h"
#include "replay/collector.h"
#include "replay/report_model.h"
#include "replay/wallet.h"

namespace ztape::replay {

struct ReplayOptions {
  std::vector<Target> targets;
  // At once. Wallet i plays session i mod the number of sessions; with fewer clients than sessions each session is
  // still played once a round, by whichever client is free.
  uint64_t clients = 1;
  uint64_t rounds = 10;
  uint64_t warmup = 1;  // rounds before, which do not count and send no transaction
  WalletOptions wallet;
  std::optional<std::size_t> reference;  // index of the target whose answers are right; nullopt: the recording's
  // The chain that targets must name in GetLightdInfo before a transaction is sent to them.
  std::string send_transaction_chain;
};

struct Progress {
  std::string target;
  bool warmup = false;
  uint64_t round = 0;  // from 1
  uint64_t rounds = 0;
};

class Engine final : private Wallet::Sink {
 public:
  // References must outlive the engine.
  Engine(net::Loop& loop, const Plan& plan, ReplayOptions options, std::function<void(const Progress&)> on_progress);
  ~Engine() override;

  // Until everything was played, or stop().
  void run();
  // Drops what is in flight; the report has what was measured so far and says that it is incomplete.
  void stop();

  // After run(). The environment is the caller's to fill.
  ReplayReport report();

 private:
  struct Job {
    enum class Kind { ask_chain, warmup, measured } kind = Kind::measured;
    std::size_t target = 0;
    uint64_t round = 0;  // from 0
  };

  void on_call_sent(MonotonicTime now) override;
  void on_call_over(uint64_t wallet, CallResult&& result) override;
  void on_wallet_done(uint64_t wallet, const ConnectionResult& result) override;

  void make_jobs();
  void next_job();
  void start_wallet();
  void end_job();
  void count_in_flight(MonotonicTime now, int change);
  void learn_chain(const CallResult& result);
  [[nodiscard]] std::vector<bool> left_out(std::size_t session);
  [[nodiscard]] const Session& session_of(uint64_t wallet) const;

  net::Loop& loop_;
  const Plan& plan_;
  ReplayOptions options_;
  std::function<void(const Progress&)> on_progress_;
  Collector collector_;
  net::Timer turn_;  // wallets are destroyed and started outside of their own callbacks
  std::vector<Job> jobs_;
  std::size_t next_job_ = 0;
  Job job_;
  MonotonicTime job_start_;

  std::vector<std::unique_ptr<Wallet>> wallets_;  // of this job, by number; nullptr: not started, or gone
  std::vector<uint64_t> finished_;                // wallets to be destroyed
  uint64_t next_wallet_ = 0;
  uint64_t wallet_count_ = 0;
  uint64_t running_ = 0;
  uint64_t connected_ = 0;       // of this job
  std::string connect_failure_;  // the last one of this job

  uint64_t in_flight_ = 0;
  MonotonicTime in_flight_since_;

  http2::RecordedConnection chain_question_;
  Session chain_session_;
  std::vector<std::string> chain_refusal_;                // by target: why no transaction may be sent, or ""
  std::vector<std::set<std::string>> transactions_sent_;  // by target: their bytes
  bool stopped_ = false;
};

}  // namespace ztape::replay
