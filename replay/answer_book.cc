#include "replay/answer_book.h"

#include <algorithm>
#include <limits>

#include "proto/method_table.h"
#include "replay/message_text.h"

namespace ztape::replay {
namespace {

// Of one method; comparing more for a line of the log would hold up the answers.
constexpr std::size_t kMaxComparedRequests = 1000;

// Lengths first, so that no two different lists make the same key.
std::string key_of(char kind, std::string_view path, std::span<const std::string> requests) {
  std::string key(1, kind);
  key += path;
  for (const auto& request : requests) {
    key += '\0';
    key += std::to_string(request.size());
    key += ':';
    key += request;
  }
  return key;
}

std::string whole_key(std::string_view path, std::span<const std::string> requests) {
  return key_of('w', path, requests);
}

std::string interleaved_key(std::string_view path, const std::string& first_request) {
  return key_of('i', path, {&first_request, 1});
}

double distance_of(std::string_view path, std::span<const std::string> a, std::span<const std::string> b) {
  const auto* type = request_type(path);
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += distance(type, a[i], b[i]);
  const auto more = std::max(a.size(), b.size()) - std::min(a.size(), b.size());
  return sum + static_cast<double>(more);
}

}  // namespace

AnswerBook::AnswerBook(std::vector<Answer>&& answers, WriteMode mode, bool timed) {
  scripts_.reserve(answers.size());
  for (auto& answer : answers) {
    auto key = answer.interleaved ? interleaved_key(answer.path, answer.requests.front())
                                  : whole_key(answer.path, answer.requests);
    auto& places = by_request_[std::move(key)];
    auto& distinct = requests_[answer.path];
    if (places.empty()) distinct.push_back(answer.requests);
    places.push_back(scripts_.size());
    scripts_.push_back(make_script(std::move(answer), mode, timed));
  }
  answers.clear();
}

const AnswerScript* AnswerBook::Reader::next(const std::string& key) {
  const auto found = book_->by_request_.find(key);
  if (found == book_->by_request_.end()) return nullptr;
  auto& given = given_[found->first];
  const auto& places = found->second;
  const auto place = std::min(given, places.size() - 1);
  ++given;
  return &book_->scripts_[places[place]];
}

const AnswerScript* AnswerBook::Reader::next_whole(std::string_view path, std::span<const std::string> requests) {
  return next(whole_key(path, requests));
}

const AnswerScript* AnswerBook::Reader::next_interleaved(std::string_view path, const std::string& first_request) {
  return next(interleaved_key(path, first_request));
}

std::optional<std::string> AnswerBook::nearest(std::string_view path, std::span<const std::string> requests) const {
  const auto found = requests_.find(path);
  if (found == requests_.end()) return std::nullopt;
  double least = std::numeric_limits<double>::infinity();
  const std::vector<std::string>* best = nullptr;
  const auto count = std::min(found->second.size(), kMaxComparedRequests);
  for (const auto& recorded : std::span(found->second).first(count)) {
    const auto here = distance_of(path, requests, recorded);
    if (here >= least) continue;
    least = here;
    best = &recorded;
  }
  return request_text(path, *best);
}

std::string request_text(std::string_view path, std::span<const std::string> requests) {
  if (requests.empty()) return "no message";
  auto text = short_text(request_type(path), requests.front());
  if (requests.size() > 1) text += " and " + std::to_string(requests.size() - 1) + " more";
  return text;
}

}  // namespace ztape::replay
