#include "replay/mutate.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "proto/method_table.h"
#include "replay/mutate_field.h"

namespace ztape::replay {
namespace {

namespace pb = google::protobuf;

constexpr std::array<std::string_view, 17> kStatusNames{
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

constexpr std::array<std::string_view, 7> kKinds{"field", "reverse", "drop", "repeat", "swap", "status", "message"};

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::unexpected<Error> refuse(std::string_view rule, const std::string& why) {
  return std::unexpected(Error{ErrorCode::usage, why, "--mutate " + std::string(rule)});
}

// "…@5" at the end; not a number after the last '@': it belongs to the value.
Result<std::optional<uint64_t>> take_count(std::string_view rule, std::string_view& rest) {
  const auto at = rest.rfind('@');
  if (at == std::string_view::npos) return std::optional<uint64_t>();
  const auto digits = rest.substr(at + 1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    if (rest.find('=') < at) return std::optional<uint64_t>();
    return refuse(rule, "'" + std::string(digits) + "' after '@' is not a number");
  }
  const auto count = number<uint64_t>(digits);
  if (!count || *count == 0) return refuse(rule, "'@" + std::string(digits) + "': counting starts at 1");
  rest = rest.substr(0, at);
  return count;
}

const pb::Descriptor* answer_type(std::string_view name) {
  for (const auto& method : methods()) {
    const auto* type = response_type(method.path);
    if (type && (type->name() == name || type->full_name() == name)) return type;
  }
  return nullptr;
}

Result<void> parse_field(Mutation& mutation, std::string_view field) {
  const auto dot = field.find('.');
  const auto type_name = field.substr(0, dot);
  mutation.type = answer_type(type_name);
  if (!mutation.type) {
    return refuse(mutation.text, "no method answers with a message '" + std::string(type_name) + "'");
  }
  if (dot == std::string_view::npos) return refuse(mutation.text, "no field named: TYPE.FIELD is needed");
  const auto* type = mutation.type;
  auto rest = field.substr(dot + 1);
  for (;;) {
    const auto end = rest.find('.');
    const std::string name(rest.substr(0, end));
    const auto* found = type->FindFieldByName(name);
    if (!found) return refuse(mutation.text, type->name() + " has no field '" + name + "'");
    mutation.path.push_back(found);
    if (end == std::string_view::npos) break;
    type = found->message_type();
    if (!type) return refuse(mutation.text, "'" + name + "' is no message: it has no fields");
    rest = rest.substr(end + 1);
  }
  return {};
}

Result<void> parse_method(Mutation& mutation, std::string_view name) {
  const auto* method = find_method(name);
  if (!method) return refuse(mutation.text, "no method '" + std::string(name) + "'");
  mutation.method = method->path;
  return {};
}

// The counted messages (or answers) a rule means.
class Counter {
 public:
  explicit Counter(const Mutation& rule) : nth_(rule.nth) {}
  bool hit() { return ++count_, !nth_ || count_ == *nth_; }

 private:
  std::optional<uint64_t> nth_;
  uint64_t count_ = 0;
};

Result<uint64_t> change_fields(const Mutation& rule, std::vector<Answer>& answers) {
  uint64_t hits = 0;
  Counter counter(rule);
  for (auto& answer : answers) {
    if (response_type(answer.path) != rule.type) continue;
    for (auto& message : answer.messages) {
      if (!counter.hit()) continue;
      std::unique_ptr<pb::Message> decoded(pb::MessageFactory::generated_factory()->GetPrototype(rule.type)->New());
      if (!decoded->ParseFromString(message.body)) continue;
      const auto changed = change_field(rule, *decoded);
      if (!changed) return refuse(rule.text, changed.error());
      if (*changed == 0) continue;
      ++hits;
      message.body = decoded->SerializeAsString();
      fit_pieces(message);
    }
  }
  return hits;
}

uint64_t change_messages(const Mutation& rule, Answer& answer) {
  auto& messages = answer.messages;
  const auto count = messages.size();
  if (rule.nth && *rule.nth > count) return 0;
  const auto place = static_cast<std::ptrdiff_t>(rule.nth.value_or(1) - 1);
  switch (rule.kind) {
    case Mutation::Kind::drop:
      if (!rule.nth) messages.clear();
      if (rule.nth) messages.erase(messages.begin() + place);
      return rule.nth ? 1 : count;
    case Mutation::Kind::repeat: {
      std::vector<AnswerMessage> changed;
      for (std::size_t i = 0; i < count; ++i) {
        changed.push_back(messages[i]);
        if (!rule.nth || i + 1 == *rule.nth) changed.push_back(messages[i]);
      }
      messages = std::move(changed);
      return rule.nth ? 1 : count;
    }
    case Mutation::Kind::swap: {
      uint64_t hits = 0;
      for (auto i = static_cast<std::size_t>(place); i + 1 < count; i += 2) {
        std::swap(messages[i], messages[i + 1]);
        ++hits;
        if (rule.nth) break;
      }
      return hits;
    }
    default: return 0;
  }
}

void set_trailer(http2::HeaderList& trailers, const std::string& name, const std::string& value) {
  for (auto& field : trailers) {
    if (field.name == name) {
      field.value = value;
      return;
    }
  }
  trailers.push_back({name, value});
}

uint64_t change_outcome(const Mutation& rule, Answer& answer) {
  if (answer.trailers.empty()) return 0;
  if (rule.kind == Mutation::Kind::status) {
    set_trailer(answer.trailers, "grpc-status", std::to_string(rule.status));
  } else {
    set_trailer(answer.trailers, "grpc-message", percent_encode(rule.value));
  }
  return 1;
}

Result<void> apply(const Mutation& rule, std::vector<Answer>& answers) {
  if (rule.type) {
    const auto hits = change_fields(rule, answers);
    if (!hits) return std::unexpected(hits.error());
    if (*hits > 0) return {};
    return refuse(rule.text,
                  "changes nothing: no recorded " + rule.type->name() + " has it" + (rule.nth ? " at that place" : ""));
  }
  uint64_t hits = 0;
  uint64_t of_method = 0;
  Counter counter(rule);
  const bool outcome = rule.kind == Mutation::Kind::status || rule.kind == Mutation::Kind::message;
  for (auto& answer : answers) {
    if (answer.path != rule.method) continue;
    ++of_method;
    if (!outcome) hits += change_messages(rule, answer);
    if (outcome && counter.hit()) hits += change_outcome(rule, answer);
  }
  if (hits > 0) return {};
  const std::string name(short_name(rule.method));
  if (of_method == 0) return refuse(rule.text, "changes nothing: the capture has no " + name);
  if (outcome) return refuse(rule.text, "changes nothing: no such answer of " + name + " ends with a status");
  return refuse(rule.text, "changes nothing: no answer of " + name + " has that message");
}

}  // namespace

std::optional<int> parse_grpc_status(std::string_view text) {
  for (std::size_t i = 0; i < kStatusNames.size(); ++i) {
    if (kStatusNames[i] == text) return static_cast<int>(i);
  }
  const auto code = number<int>(text);
  if (!code || *code < 0 || *code >= static_cast<int>(kStatusNames.size())) return std::nullopt;
  return code;
}

std::string percent_encode(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte >= 0x20 && byte <= 0x7e && c != '%') {
      encoded += c;
    } else {
      encoded += '%';
      encoded += kDigits[byte >> 4];
      encoded += kDigits[byte & 15];
    }
  }
  return encoded;
}

Result<Mutation> parse_mutation(std::string_view rule) {
  Mutation mutation;
  mutation.text = rule;
  const auto colon = rule.find(':');
  const auto kind = rule.substr(0, colon);
  if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) {
    return refuse(rule, "'" + std::string(kind) +
                            "' is no rule: field, reverse, drop, repeat, swap, status or message, then ':'");
  }
  if (colon == std::string_view::npos) return refuse(rule, "':' is missing after '" + std::string(kind) + "'");
  auto rest = rule.substr(colon + 1);
  auto count = take_count(rule, rest);
  if (!count) return std::unexpected(count.error());
  mutation.nth = *count;

  if (kind == "reverse") {
    mutation.kind = Mutation::Kind::reverse_field;
    if (auto parsed = parse_field(mutation, rest); !parsed) return std::unexpected(parsed.error());
    if (const auto wrong = check_field(mutation); !wrong.empty()) return refuse(rule, wrong);
    return mutation;
  }
  if (kind == "drop" || kind == "repeat" || kind == "swap") {
    mutation.kind = kind == "drop"     ? Mutation::Kind::drop
                    : kind == "repeat" ? Mutation::Kind::repeat
                                       : Mutation::Kind::swap;
    if (auto parsed = parse_method(mutation, rest); !parsed) return std::unexpected(parsed.error());
    return mutation;
  }

  const auto sign = rest.find_first_of(kind == "field" ? "=+-" : "=");
  if (sign == std::string_view::npos) {
    return refuse(rule,
                  kind == "field" ? "'=VALUE', '+NUMBER' or '-NUMBER' is missing" : "'=' and a value are missing");
  }
  const auto target = rest.substr(0, sign);
  mutation.value = rest.substr(sign + 1);
  if (kind == "field") {
    if (auto parsed = parse_field(mutation, target); !parsed) return std::unexpected(parsed.error());
    mutation.kind = rest[sign] == '=' ? Mutation::Kind::set_field : Mutation::Kind::add_to_field;
    if (mutation.kind == Mutation::Kind::add_to_field) {
      const auto amount = number<int64_t>(mutation.value);
      if (!amount || mutation.value.starts_with('-')) {
        return refuse(rule, "'" + mutation.value + "' is not a number");
      }
      mutation.amount = rest[sign] == '-' ? -*amount : *amount;
    }
    if (const auto wrong = check_field(mutation); !wrong.empty()) return refuse(rule, wrong);
    return mutation;
  }
  if (auto parsed = parse_method(mutation, target); !parsed) return std::unexpected(parsed.error());
  mutation.kind = kind == "status" ? Mutation::Kind::status : Mutation::Kind::message;
  if (mutation.kind == Mutation::Kind::status) {
    const auto status = parse_grpc_status(mutation.value);
    if (!status) return refuse(rule, "'" + mutation.value + "' is no gRPC status");
    mutation.status = *status;
  }
  return mutation;
}

Result<void> apply_mutations(const std::vector<Mutation>& rules, std::vector<Answer>& answers) {
  for (const auto& rule : rules) {
    if (auto applied = apply(rule, answers); !applied) return applied;
  }
  return {};
}

}  // namespace ztape::replay
