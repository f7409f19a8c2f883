// The proxy's figures for Prometheus, in its text format.
#pragma once

#include <string>
#include <string_view>

#include "proto/words.h"
#include "proxy/live_facts.h"
#include "report/process_figures.h"

namespace ztape::report {

// https://prometheus.io/docs/instrumenting/exposition_formats/, "Text-based format".
inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

struct MetricsContext {
  std::string_view version;  // of this program
  WallTime started;
  ProcessFigures process{};
};

// Any thread. docs/proxy.md lists the metrics.
std::string metrics_page(const proxy::LiveFacts& facts, const MetricsContext& context);

}  // namespace ztape::report
