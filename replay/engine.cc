#include "replay/engine.h"

#include <algorithm>

#include "proto/service.pb.h"

namespace ztape::replay {
namespace {

constexpr const char* kSentOnce = "a transaction is sent to each target once: not in warm-up, not twice";

// A connection of our own making: one GetLightdInfo.
http2::RecordedConnection chain_question() {
  http2::Call call;
  call.stream = 1;
  call.path = "/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetLightdInfo";
  call.request_headers = {{":method", "POST"},    {":scheme", "http"}, {":path", call.path},
                          {":authority", ""},     {"te", "trailers"},  {"content-type", "application/grpc"},
                          {"user-agent", "ztape"}};
  call.start_ns = call.request_end_ns = 0;
  call.end_ns = 1;
  call.ended_by = http2::EndedBy::trailers;
  call.requests.emplace_back();  // Empty
  http2::RecordedConnection connection;
  connection.client_settings = {{0x2, 0}};  // ENABLE_PUSH off
  connection.calls.push_back(std::move(call));
  return connection;
}

std::string_view pace_name(Pace pace) {
  switch (pace) {
    case Pace::think: return "think";
    case Pace::recorded: return "recorded";
    case Pace::none: return "none";
  }
  return "";
}

}  // namespace

Engine::Engine(net::Loop& loop, const Plan& plan, ReplayOptions options,
               std::function<void(const Progress&)> on_progress)
    : loop_(loop),
      plan_(plan),
      options_(std::move(options)),
      on_progress_(std::move(on_progress)),
      collector_(plan, options_.targets, options_.reference),
      turn_(loop),
      chain_question_(chain_question()),
      chain_session_(make_session(chain_question_, {})),
      chain_refusal_(options_.targets.size()),
      transactions_sent_(options_.targets.size()) {
  make_jobs();
}

Engine::~Engine() = default;

void Engine::make_jobs() {
  const auto targets = options_.targets.size();
  if (plan_.sessions.empty()) return;
  const bool transactions = std::ranges::any_of(plan_.sessions, [](const Session& session) {
    return std::ranges::any_of(session.calls, [](const PlannedCall& c) { return c.sends_transaction && !c.skipped(); });
  });
  for (std::size_t i = 0; i < targets && transactions; ++i) jobs_.push_back({Job::Kind::ask_chain, i, 0});
  const auto add_rounds = [&](Job::Kind kind, uint64_t rounds) {
    for (uint64_t round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < targets; ++i) {
        jobs_.push_back({kind, round % 2 == 0 ? i : targets - 1 - i, round});
      }
    }
  };
  add_rounds(Job::Kind::warmup, options_.warmup);
  add_rounds(Job::Kind::measured, options_.rounds);
}

void Engine::run() {
  if (jobs_.empty()) return;
  turn_.start(0, [this] { next_job(); });
  loop_.run();
}

void Engine::stop() {
  stopped_ = true;
  turn_.cancel();
  wallets_.clear();
  loop_.stop();
}

const Session& Engine::session_of(uint64_t wallet) const {
  return job_.kind == Job::Kind::ask_chain ? chain_session_ : plan_.sessions[wallet % plan_.sessions.size()];
}

void Engine::next_job() {
  while (next_job_ < jobs_.size() && !collector_.target(jobs_[next_job_].target).unreachable.empty()) ++next_job_;
  if (next_job_ == jobs_.size()) return loop_.stop();
  const bool new_round = jobs_[next_job_].kind != job_.kind || jobs_[next_job_].round != job_.round;
  if (new_round) collector_.end_round();
  job_ = jobs_[next_job_++];
  job_start_ = net::monotonic_now();
  in_flight_ = 0;
  in_flight_since_ = job_start_;
  connected_ = 0;
  connect_failure_.clear();
  next_wallet_ = 0;
  wallet_count_ = job_.kind == Job::Kind::ask_chain ? 1 : std::max<uint64_t>(options_.clients, plan_.sessions.size());
  wallets_.clear();
  wallets_.resize(wallet_count_);
  if (on_progress_ && job_.kind != Job::Kind::ask_chain) {
    const bool warmup = job_.kind == Job::Kind::warmup;
    on_progress_(
        {options_.targets[job_.target].name, warmup, job_.round + 1, warmup ? options_.warmup : options_.rounds});
  }
  for (uint64_t i = 0; i < std::min(options_.clients, wallet_count_); ++i) start_wallet();
}

void Engine::start_wallet() {
  const auto number = next_wallet_++;
  ++running_;
  auto& wallet = wallets_[number];
  wallet = std::make_unique<Wallet>(
      loop_, number, options_.targets[job_.target], session_of(number), options_.wallet,
      job_.kind == Job::Kind::ask_chain ? std::vector<bool>() : left_out(number % plan_.sessions.size()),
      static_cast<Wallet::Sink&>(*this));
  wallet->start();
}

// The transactions that this wallet must not send.
std::vector<bool> Engine::left_out(std::size_t session) {
  const auto& calls = plan_.sessions[session].calls;
  std::vector<bool> out(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i].sends_transaction || calls[i].skipped()) continue;
    const auto bytes = request_hex(*calls[i].recorded);
    out[i] = job_.kind == Job::Kind::warmup || !chain_refusal_[job_.target].empty() ||
             !transactions_sent_[job_.target].insert(bytes).second;
  }
  return out;
}

void Engine::on_call_sent(MonotonicTime now) {
  count_in_flight(now, 1);
}

void Engine::on_call_over(uint64_t wallet, CallResult&& result) {
  if (result.sent) count_in_flight(result.end, -1);
  switch (job_.kind) {
    case Job::Kind::ask_chain: learn_chain(result); break;
    case Job::Kind::warmup: break;
    case Job::Kind::measured:
      collector_.call_over(job_.target, wallet, wallet % plan_.sessions.size(), std::move(result));
      break;
  }
}

void Engine::learn_chain(const CallResult& result) {
  auto& refusal = chain_refusal_[job_.target];
  const auto& name = options_.targets[job_.target].name;
  const auto body = result.answer.kept_body(0);
  cash::z::wallet::sdk::rpc::LightdInfo about;
  if (!body || !about.ParseFromString(std::string(*body))) {
    refusal = name + " did not say which chain it is on";
  } else if (about.chainname() != options_.send_transaction_chain) {
    refusal = name + " is on chain '" + about.chainname() + "', not '" + options_.send_transaction_chain + "'";
  }
}

void Engine::count_in_flight(MonotonicTime now, int change) {
  if (job_.kind != Job::Kind::measured) return;
  auto& target = collector_.target(job_.target);
  target.in_flight_ns +=
      static_cast<double>(in_flight_) * static_cast<double>(std::max<int64_t>(0, now - in_flight_since_));
  in_flight_since_ = std::max(now, in_flight_since_);
  in_flight_ += static_cast<uint64_t>(change);
  target.max_in_flight = std::max(target.max_in_flight, in_flight_);
}

void Engine::on_wallet_done(uint64_t wallet, const ConnectionResult& result) {
  --running_;
  finished_.push_back(wallet);
  if (result.connect_ns) {
    ++connected_;
    if (job_.kind == Job::Kind::measured) {
      ++collector_.target(job_.target).connections;
      collector_.target(job_.target).connect.add(*result.connect_ns);
    }
  } else {
    connect_failure_ = result.failure;
  }
  turn_.start(0, [this] {
    for (const auto done : finished_) wallets_[done].reset();
    finished_.clear();
    while (next_wallet_ < wallet_count_ && running_ < options_.clients) start_wallet();
    if (running_ == 0) end_job();
  });
}

void Engine::end_job() {
  auto& target = collector_.target(job_.target);
  if (job_.kind == Job::Kind::measured) {
    ++target.rounds;
    target.busy_ns += net::monotonic_now() - job_start_;
    if (connected_ == 0) target.unreachable = connect_failure_;
  }
  next_job();
}

ReplayReport Engine::report() {
  ReplayReport report;
  uint64_t transactions = 0;
  for (const auto& session : plan_.sessions) {
    for (const auto& call : session.calls) transactions += call.sends_transaction && !call.skipped() ? 1 : 0;
  }
  for (const auto& refusal : chain_refusal_) {
    if (!refusal.empty()) collector_.add_skipped("SendTransaction", refusal, transactions);
  }
  const bool sent = std::ranges::any_of(transactions_sent_, [](const auto& of_target) { return !of_target.empty(); });
  const bool again = options_.warmup > 0 || options_.rounds > 1 || options_.clients > plan_.sessions.size();
  if (sent && again) collector_.add_skipped("SendTransaction", kSentOnce, transactions);
  if (stopped_) {
    report.incomplete.push_back("interrupted in round " + std::to_string(job_.round + 1) + " of " +
                                std::to_string(options_.rounds));
  }
  collector_.finish(report);
  report.load = {
      options_.clients, std::max<uint64_t>(options_.clients, plan_.sessions.size()), options_.rounds,
      options_.warmup,  std::string(pace_name(options_.wallet.pacing.pace)),         options_.wallet.pacing.speed};
  return report;
}

}  // namespace ztape::replay
