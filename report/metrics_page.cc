#include "report/metrics_page.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "report/capture_page.h"

namespace ztape::report {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr double kNsPerSecond = 1e9;
constexpr std::array<int64_t, 14> kLagBoundsNs{10'000,     25'000,     50'000,      100'000,      250'000,
                                               500'000,    1'000'000,  2'500'000,   5'000'000,    10'000'000,
                                               25'000'000, 50'000'000, 250'000'000, 1'000'000'000};

double seconds(int64_t ns) {
  return static_cast<double>(ns) / kNsPerSecond;
}

std::string method_label(const std::string& path) {
  return path.empty() ? "(unreadable)" : path;
}

std::string status_label(const std::optional<int>& status) {
  return status ? grpc_status_name(*status) : "none";
}

// Families in the order in which they are begun.
class Page {
 public:
  void begin(MetricType type, const std::string& name, const std::string& help) {
    families_.push_back({.name = name, .help = help, .type = type, .metric = {}});
  }
  void counter(const std::string& name, const std::string& help, uint64_t value) {
    begin(MetricType::Counter, name, help);
    add(static_cast<double>(value));
  }
  void gauge(const std::string& name, const std::string& help, double value) {
    begin(MetricType::Gauge, name, help);
    add(value);
  }
  void add(double value, Labels labels = {}) {
    auto& metric = metric_with(std::move(labels));
    (families_.back().type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  }
  // `counts` of each bucket by itself, the last one without a bound.
  template <typename Bounds, typename Counts>
  void add_histogram(const Bounds& bounds_ns, const Counts& counts, int64_t sum_ns, Labels labels = {}) {
    auto& histogram = metric_with(std::move(labels)).histogram;
    uint64_t sum = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      sum += counts[i];
      const double bound = i < bounds_ns.size() ? seconds(bounds_ns[i]) : std::numeric_limits<double>::infinity();
      histogram.bucket.push_back({.cumulative_count = sum, .upper_bound = bound});
    }
    histogram.sample_count = sum;
    histogram.sample_sum = seconds(sum_ns);
  }
  [[nodiscard]] std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  ClientMetric& metric_with(Labels labels) {
    auto& metric = families_.back().metric.emplace_back();
    metric.label = std::move(labels);
    return metric;
  }

  std::vector<MetricFamily> families_;
};

void add_connections(Page& page, const proxy::LiveFacts& facts) {
  const auto& counts = facts.counts;
  page.gauge("ztape_connections_open", "Connections that are being relayed.",
             static_cast<double>(facts.open_connections));
  page.counter("ztape_connections_total", "Connections that were taken.", counts.connections);
  page.begin(MetricType::Counter, "ztape_connections_failed_total", "Connections that were not relayed, by reason.");
  for (const auto& [reason, number] :
       {std::pair{"max_connections", counts.turned_away}, std::pair{"upstream_unreachable", counts.upstream_failures},
        std::pair{"tls_handshake", counts.handshake_failures},
        std::pair{"no_destination", counts.intake.no_destination},
        std::pair{"bad_proxy_header", counts.intake.bad_proxy_headers}}) {
    page.add(static_cast<double>(number), {{"reason", reason}});
  }
  page.counter("ztape_descriptor_waits_total", "How often connections waited because no file descriptor was left.",
               counts.intake.descriptor_waits);
  page.begin(MetricType::Counter, "ztape_relayed_bytes_total", "Bytes that were relayed, by direction.");
  for (const auto direction : kDirections) {
    page.add(static_cast<double>(counts.bytes[index(direction)]), {{"direction", std::string(name(direction))}});
  }
  page.counter("ztape_reader_pauses_total", "How often a peer that did not read stopped the reading of the other one.",
               counts.pauses);
}

void add_calls(Page& page, const proxy::RecorderSnapshot& snapshot) {
  page.begin(MetricType::Counter, "ztape_calls_total", "Calls that ended, by method, gRPC status and what ended them.");
  for (const auto& [key, outcome] : snapshot.outcomes) {
    page.add(static_cast<double>(outcome.calls), {{"method", method_label(key.path)},
                                                  {"grpc_status", status_label(key.grpc_status)},
                                                  {"ended_by", std::string(http2::name(key.ended_by))}});
  }
  page.begin(MetricType::Counter, "ztape_calls_unseen_total",
             "Calls whose end the recorder could not see, because of a gap or of bytes that are not HTTP/2.");
  for (const auto& method : snapshot.methods) {
    page.add(static_cast<double>(method.unseen), {{"method", method_label(method.path)}});
  }
  page.begin(MetricType::Gauge, "ztape_calls_in_flight", "Calls that have begun and not ended.");
  for (const auto& method : snapshot.methods) {
    page.add(static_cast<double>(method.in_flight), {{"method", method_label(method.path)}});
  }
  // The ways to end have no part in these.
  std::map<std::pair<std::string, std::string>, proxy::Outcome> durations;
  for (const auto& [key, outcome] : snapshot.outcomes) {
    if (outcome.timed_calls() == 0) continue;
    auto& sum = durations[{method_label(key.path), status_label(key.grpc_status)}];
    for (std::size_t i = 0; i < sum.durations.size(); ++i) sum.durations[i] += outcome.durations[i];
    sum.duration_sum_ns += outcome.duration_sum_ns;
  }
  page.begin(MetricType::Histogram, "ztape_call_duration_seconds",
             "From the last byte of a request's headers to the end of its call, by method and gRPC status.");
  for (const auto& [labels, sum] : durations) {
    page.add_histogram(proxy::kDurationBoundsNs, sum.durations, sum.duration_sum_ns,
                       {{"method", labels.first}, {"grpc_status", labels.second}});
  }
}

void add_recorder(Page& page, const proxy::LiveFacts& facts) {
  const auto& recorder = facts.recorder;
  const auto& thread = *recorder.of_thread;
  page.counter("ztape_capture_written_bytes_total", "Bytes that were written to the capture.", thread.file_bytes);
  page.gauge("ztape_recorder_queue_bytes", "What waits to be written.", static_cast<double>(recorder.queue_bytes));
  page.gauge("ztape_recorder_queue_limit_bytes", "What may wait.", static_cast<double>(recorder.queue_limit_bytes));
  page.counter("ztape_recorder_holds_total", "How often the traffic waited for the disk.", facts.counts.holds);
  page.gauge("ztape_recorder_compression_level", "The level of zstd in use.", thread.compression_level);
  page.counter("ztape_recorder_lost_chunks_total", "Reads that are not in the capture.", recorder.loss.chunks);
  page.counter("ztape_recorder_lost_bytes_total", "Bytes of traffic that are not in the capture.", recorder.loss.bytes);
  page.counter("ztape_recorder_lost_records_total", "Other records that are not in the capture.",
               recorder.loss.records);
  page.counter("ztape_recorder_gaps_total", "Gap records in the capture.", recorder.loss.gaps);
  page.gauge("ztape_recorder_failed", "1 where the capture cannot be written any more.", thread.error.empty() ? 0 : 1);
}

void add_loop(Page& page, const proxy::LiveFacts& facts) {
  std::array<uint64_t, kLagBoundsNs.size() + 1> counts{};
  facts.loop_turns.for_each_bucket([&](int64_t top_ns, uint64_t count) {
    std::size_t i = 0;
    while (i < kLagBoundsNs.size() && top_ns > kLagBoundsNs[i]) ++i;
    counts[i] += count;
  });
  page.begin(MetricType::Histogram, "ztape_loop_lag_seconds",
             "How long the turns of the event loop took: what arrives in a turn is looked at after it.");
  page.add_histogram(kLagBoundsNs, counts, facts.loop_turns.sum_ns());
  page.gauge("ztape_loop_lag_max_seconds", "The longest since the start, late timers included.",
             seconds(facts.loop_lag_max_ns));
}

void add_process(Page& page, const MetricsContext& context) {
  page.begin(MetricType::Gauge, "ztape_build_info", "1; the version is a label.");
  page.add(1, {{"version", std::string(context.version)}});
  const auto& process = context.process;
  page.begin(MetricType::Counter, "process_cpu_seconds_total", "User and system CPU time of the process.");
  page.add(process.cpu_seconds);
  page.gauge("process_start_time_seconds", "When the recording began, as Unix time.", seconds(context.started.unix_ns));
  const auto add = [&](const std::string& name, const std::string& help, const std::optional<uint64_t>& value) {
    if (value) page.gauge(name, help, static_cast<double>(*value));
  };
  add("process_resident_memory_bytes", "Resident memory.", process.resident_bytes);
  add("process_open_fds", "Open file descriptors.", process.open_descriptors);
  add("process_max_fds", "The limit of open file descriptors.", process.most_descriptors);
}

}  // namespace

std::string metrics_page(const proxy::LiveFacts& facts, const MetricsContext& context) {
  Page page;
  add_connections(page, facts);
  add_calls(page, *facts.recorder.of_thread);
  add_recorder(page, facts);
  add_loop(page, facts);
  add_process(page, context);
  return page.text();
}

}  // namespace ztape::report
