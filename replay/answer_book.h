// The recorded answers, found by what was asked. Pure; read-only once it is made, so any number of connections and
// threads may use one book.
//
// A request is known by its method and the exact bytes of its messages. The n-th such request of a connection gets the
// n-th recorded answer to it, over the whole capture in order of time; after the last one, the last one again. A call
// whose answer began before its request was complete (a bidirectional stream) is known by its first message alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "replay/answer.h"
#include "replay/answer_script.h"

namespace ztape::replay {

class AnswerBook {
 public:
  // `answers` in the order of load_answers().
  AnswerBook(std::vector<Answer>&& answers, WriteMode mode, bool timed);

  // Which answers one connection has been given. The book must outlive it.
  class Reader {
   public:
    explicit Reader(const AnswerBook& book) : book_(&book) {}
    // nullptr: not in the capture.
    const AnswerScript* next_whole(std::string_view path, std::span<const std::string> requests);
    // The answer of an interleaved call, by its first message; nullptr when this is none.
    const AnswerScript* next_interleaved(std::string_view path, const std::string& first_request);

   private:
    const AnswerScript* next(const std::string& key);
    const AnswerBook* book_;
    std::unordered_map<std::string_view, std::size_t> given_;  // by the book's own keys
  };

  // The most similar recorded request of that method, in one line; nullopt: the capture has none of that method.
  [[nodiscard]] std::optional<std::string> nearest(std::string_view path, std::span<const std::string> requests) const;

  [[nodiscard]] std::size_t answer_count() const { return scripts_.size(); }
  [[nodiscard]] std::size_t method_count() const { return requests_.size(); }

 private:
  std::vector<AnswerScript> scripts_;
  std::unordered_map<std::string, std::vector<std::size_t>> by_request_;  // indices into scripts_, in order of time
  std::map<std::string, std::vector<std::vector<std::string>>, std::less<>> requests_;  // distinct ones, by path
};

// A call's requests in one line: "{height: 7}", "{address: \"t1...\"} and 2 more".
std::string request_text(std::string_view path, std::span<const std::string> requests);

}  // namespace ztape::replay
