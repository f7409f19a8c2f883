#include "tests/support/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace ztape::test {
namespace {

[[noreturn]] void refuse(const std::string& line, const std::string& why) {
  throw std::runtime_error("not a metrics page: " + why + ": '" + line + "'");
}

bool is_name(const std::string& text, bool colons) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (colons && c == ':');
  });
}

double number(const std::string& text, const std::string& line) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    refuse(line, "no number");
  }
  if (used != text.size() || std::isnan(value)) refuse(line, "no number");
  return value;
}

Sample read_sample(const std::string& line) {
  Sample sample;
  std::size_t at = line.find_first_of("{ ");
  if (at == std::string::npos) refuse(line, "no value");
  sample.name = line.substr(0, at);
  if (!is_name(sample.name, true)) refuse(line, "bad name");
  if (line[at] == '{') {
    ++at;
    while (at < line.size() && line[at] != '}') {
      const auto equals = line.find('=', at);
      if (equals == std::string::npos || equals + 1 >= line.size() || line[equals + 1] != '"')
        refuse(line, "bad label");
      const auto label = line.substr(at, equals - at);
      if (!is_name(label, false)) refuse(line, "bad label name");
      std::string value;
      for (at = equals + 2;; ++at) {
        if (at >= line.size()) refuse(line, "label without end");
        if (line[at] == '"') break;
        if (line[at] != '\\') {
          value += line[at];
          continue;
        }
        if (++at >= line.size()) refuse(line, "label without end");
        if (line[at] == 'n') {
          value += '\n';
        } else if (line[at] == '\\' || line[at] == '"') {
          value += line[at];
        } else {
          refuse(line, "bad escape");
        }
      }
      ++at;
      if (!sample.labels.emplace(label, value).second) refuse(line, "a label twice");
      if (at < line.size() && line[at] == ',') ++at;
    }
    if (at >= line.size()) refuse(line, "labels without end");
    ++at;
  }
  if (at >= line.size() || line[at] != ' ') refuse(line, "no value");
  sample.value = number(line.substr(at + 1), line);
  return sample;
}

std::string family_of(const Sample& sample, const std::map<std::string, std::string>& types) {
  if (types.contains(sample.name)) return sample.name;
  for (const std::string suffix : {"_bucket", "_sum", "_count"}) {
    if (!sample.name.ends_with(suffix)) continue;
    const auto stem = sample.name.substr(0, sample.name.size() - suffix.size());
    if (const auto found = types.find(stem); found != types.end() && found->second == "histogram") return stem;
  }
  return "";
}

void check_histograms(const Metrics& metrics) {
  for (const auto& [family, type] : metrics.types) {
    if (type != "histogram") continue;
    std::map<Labels, std::map<double, double>> buckets;
    std::map<Labels, double> counts, sums;
    for (const auto& sample : metrics.samples) {
      if (sample.name == family + "_count") counts[sample.labels] = sample.value;
      if (sample.name == family + "_sum") sums[sample.labels] = sample.value;
      if (sample.name != family + "_bucket") continue;
      auto labels = sample.labels;
      if (!labels.contains("le")) refuse(family, "a bucket without le");
      const double bound = number(labels["le"], family);
      labels.erase("le");
      buckets[labels][bound] = sample.value;
    }
    if (buckets.size() != counts.size() || sums.size() != counts.size()) refuse(family, "an incomplete histogram");
    for (const auto& [labels, of] : buckets) {
      double last = 0;
      for (const auto& [bound, count] : of) {
        if (count < last) refuse(family, "a histogram that is not cumulative");
        last = count;
      }
      if (!std::isinf(of.rbegin()->first)) refuse(family, "no bucket +Inf");
      if (!counts.contains(labels) || counts[labels] != last) refuse(family, "a count that is not that of +Inf");
    }
  }
}

}  // namespace

double Metrics::value(const std::string& name, const Labels& labels) const {
  for (const auto& sample : samples) {
    if (sample.name == name && sample.labels == labels) return sample.value;
  }
  throw std::runtime_error("no sample of " + name + " with these labels");
}

double Metrics::sum(const std::string& name, const Labels& some) const {
  double sum = 0;
  for (const auto& sample : samples) {
    const bool fits = std::ranges::all_of(some, [&](const auto& label) {
      const auto found = sample.labels.find(label.first);
      return found != sample.labels.end() && found->second == label.second;
    });
    if (sample.name == name && fits) sum += sample.value;
  }
  return sum;
}

Metrics read_metrics(const std::string& text) {
  Metrics metrics;
  if (text.empty() || text.back() != '\n') refuse("", "the last line has no end");
  std::map<std::string, std::string> helps;
  std::set<std::pair<std::string, Labels>> seen;
  std::set<std::string> over;  // families that others have followed
  std::string current;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    if (line.starts_with("# ")) {
      std::istringstream words(line.substr(2));
      std::string kind, name, rest;
      words >> kind >> name;
      std::getline(words >> std::ws, rest);
      if ((kind != "HELP" && kind != "TYPE") || !is_name(name, true) || rest.empty()) refuse(line, "a bad comment");
      if (!(kind == "HELP" ? helps : metrics.types).emplace(name, rest).second) refuse(line, "said twice");
      if (kind != "TYPE") continue;
      if (rest != "counter" && rest != "gauge" && rest != "histogram") refuse(line, "another type");
      if (name.ends_with("_total") != (rest == "counter")) refuse(line, "_total is for counters");
      continue;
    }
    auto sample = read_sample(line);
    const auto family = family_of(sample, metrics.types);
    if (family.empty() || !helps.contains(family)) refuse(line, "no HELP and TYPE before");
    if (family != current && over.contains(family)) refuse(line, "a family in two pieces");
    if (family != current) over.insert(std::exchange(current, family));
    if (!seen.emplace(sample.name, sample.labels).second) refuse(line, "a sample twice");
    metrics.samples.push_back(std::move(sample));
  }
  check_histograms(metrics);
  return metrics;
}

}  // namespace ztape::test
