// Changes recorded answers on purpose (`ztape serve --mutate RULE`), so that a comparison has something to find. Pure.
//
//   field:TYPE.PATH=VALUE[@N]   sets a field of the N-th message of that type; +NUMBER and -NUMBER change an integer
//   reverse:TYPE.PATH[@N]       turns a bytes field round
//   drop:METHOD[@N]             leaves out the N-th message of every answer of that method
//   repeat:METHOD[@N]           gives it twice
//   swap:METHOD[@N]             swaps it with the one after it
//   status:METHOD=STATUS[@N]    the grpc-status of the N-th answer of that method, by name or number
//   message:METHOD=TEXT[@N]     its grpc-message
//
// N counts from 1, in the order in which the calls were recorded, so the same rule always hits the same message;
// without @N all are meant (swap: the 1st with the 2nd, the 3rd with the 4th, ...). TYPE is what a method answers
// with, without its package; PATH may go into messages (CompactBlock.vtx.fee: of each transaction). VALUE is a number,
// true or false, an enum's name, text, or hex for a bytes field. Rules apply one after another. What no rule touches
// keeps its recorded bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/error.h"
#include "replay/answer.h"

namespace google::protobuf {
class Descriptor;
class FieldDescriptor;
}  // namespace google::protobuf

namespace ztape::replay {

struct Mutation {
  enum class Kind { set_field, add_to_field, reverse_field, drop, repeat, swap, status, message };

  Kind kind = Kind::drop;
  std::string text;                                            // the rule as it was written
  std::optional<uint64_t> nth;                                 // from 1; absent: all
  const google::protobuf::Descriptor* type = nullptr;          // field rules
  std::vector<const google::protobuf::FieldDescriptor*> path;  // field rules: the last one is the field
  std::string method;                                          // other rules: its path, "/…/GetBlock"
  std::string value;                                           // as it was written
  int64_t amount = 0;                                          // add_to_field
  int status = 0;                                              // status
};

// Errors: usage, naming the part of the rule that is wrong.
Result<Mutation> parse_mutation(std::string_view rule);

// Applies the rules in their order; `answers` are in the order of load_answers(). Errors: usage, when a rule hits
// nothing or would leave the range of its field.
Result<void> apply_mutations(const std::vector<Mutation>& rules, std::vector<Answer>& answers);

// "INTERNAL" or "13" of grpc-status; nullopt: no such code (gRPC, statuscodes.md).
std::optional<int> parse_grpc_status(std::string_view text);

// As grpc-message wants it: everything but printable ASCII, and '%', escaped.
std::string percent_encode(std::string_view text);

}  // namespace ztape::replay
