// A strict reader of Prometheus' text format, version 0.0.4, written after its specification and not after our page.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace ztape::test {

using Labels = std::map<std::string, std::string>;

struct Sample {
  std::string name;
  Labels labels;
  double value = 0;
};

struct Metrics {
  std::map<std::string, std::string> types;  // of each family
  std::vector<Sample> samples;
  // Of exactly that sample; throws std::runtime_error where there is none.
  [[nodiscard]] double value(const std::string& name, const Labels& labels = {}) const;
  // The sum of all samples of that name whose labels include these.
  [[nodiscard]] double sum(const std::string& name, const Labels& some = {}) const;
};

// Throws std::runtime_error for what is not in the format, and for what Prometheus or `promtool check metrics` would
// not take: a sample without HELP and TYPE before it, one that comes twice, a family in two pieces, a counter without
// _total or a gauge with it, histograms that are not cumulative or without +Inf, _sum or _count.
Metrics read_metrics(const std::string& text);

}  // namespace ztape::test
