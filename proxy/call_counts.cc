#include "proxy/call_counts.h"

#include <algorithm>
#include <numeric>

namespace ztape::proxy {
namespace {

constexpr int kMostGrpcStatus = 16;  // gRPC's status codes end there

// RFC 9113, section 8.3.1: a path begins with a slash. "": the request could not be read.
bool can_be_shown(const std::string& path) {
  if (!path.empty() && path.front() != '/') return false;
  return path.size() <= kLongestPath && std::ranges::all_of(path, [](char c) { return c > 0x20 && c < 0x7f; });
}

bool given_up(const http2::Call& call) {
  return call.ended_by == http2::EndedBy::client_reset || call.ended_by == http2::EndedBy::client_close;
}

}  // namespace

uint64_t Outcome::timed_calls() const {
  return std::accumulate(durations.begin(), durations.end(), uint64_t{0});
}

CallCounts::Method& CallCounts::method(const std::string& path) {
  if (const auto found = methods_.find(path); found != methods_.end()) return found->second;
  const bool own = methods_.size() < kMostMethods && can_be_shown(path);
  const std::string name = own ? path : std::string(kOtherMethods);
  auto& made = methods_[name];
  made.figures.path = name;
  return made;
}

void CallCounts::on_begun(const http2::Call& call) {
  ++method(call.path).figures.in_flight;
}

void CallCounts::on_over(const http2::Call& call) {
  auto& in_flight = method(call.path).figures.in_flight;
  if (in_flight > 0) --in_flight;
}

void CallCounts::add(const http2::Call& call) {
  ++total_;
  auto& row = method(call.path);
  auto& figures = row.figures;
  ++figures.calls;
  if (call.end_unseen) {
    ++figures.unseen;
  } else if (http2::is_error(call)) {
    ++figures.errors;
  } else if (given_up(call)) {
    ++figures.cancelled;
  }

  Key key{.path = figures.path, .grpc_status = call.grpc_status, .ended_by = call.ended_by};
  if (rows_.size() >= kMostOutcomes && !rows_.contains(key)) {
    key.path = kOtherMethods;
    if (key.grpc_status && (*key.grpc_status < 0 || *key.grpc_status > kMostGrpcStatus)) key.grpc_status.reset();
  }
  auto& outcome = rows_[std::move(key)];
  ++outcome.calls;
  if (call.start_ns < 0 || call.end_ns < call.start_ns || call.end_unseen) return;
  const int64_t duration_ns = call.end_ns - call.start_ns;
  const auto bound = std::ranges::lower_bound(kDurationBoundsNs, duration_ns);
  ++outcome.durations[static_cast<std::size_t>(bound - kDurationBoundsNs.begin())];
  outcome.duration_sum_ns += duration_ns;
  row.durations.add(duration_ns);
}

std::vector<MethodFigures> CallCounts::methods() const {
  std::vector<MethodFigures> all;
  all.reserve(methods_.size());
  for (const auto& [path, method] : methods_) {
    auto& figures = all.emplace_back(method.figures);
    figures.p50_ns = method.durations.quantile_ns(.5);
    figures.p95_ns = method.durations.quantile_ns(.95);
    figures.max_ns = method.durations.max_ns();
  }
  return all;
}

}  // namespace ztape::proxy
