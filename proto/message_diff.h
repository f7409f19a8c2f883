// Which fields of two serialized messages differ, by name.
//
// Pure. Names come from the descriptor; bytes that do not parse, and fields the descriptor does not know, are told by
// offset and by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace google::protobuf {
class Descriptor;
}

namespace ztape {

// monostate: there is nothing (an absent element or message). Bytes are a string of hex digits.
using FieldValue = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string>;

// `path` is one of
//   "version", "vtx[2].outputs[0].cmu"   a scalar; an absent one has its default value (proto3)
//   "vtx[]"                              the number of elements of a repeated field
//   "chainMetadata"                      a message that only one side has: "present" against nothing
//   "#19", "vtx[2].#19"                  an unknown field, by number
//   "bytes[17]"                          the first byte that differs, and what follows it, as hex: where a message does
//                                        not parse, or where the same fields are encoded in another way
struct FieldDifference {
  std::string path;
  FieldValue left;
  FieldValue right;
  friend bool operator==(const FieldDifference&, const FieldDifference&) = default;
};

inline constexpr std::size_t kMaxFieldDifferences = 1000;  // of one message; the rest is left out

// All differing fields, in the order of the descriptor. Empty exactly when the bytes are equal. `type` may be null
// (unknown method): then only bytes are told. Enums are told by name. A field of type bytes that carries a block hash
// or a transaction id (shown_reversed) is told the way people read them: reversed hex.
std::vector<FieldDifference> diff_messages(const google::protobuf::Descriptor* type, std::string_view left,
                                           std::string_view right);

// True for hash, prevHash, txid, completingBlockHash and prevoutTxid: they travel in internal byte order and people
// read them reversed. It goes by the name alone, so a server that sends one in display order shows up reversed.
bool shown_reversed(std::string_view field_name);

std::string to_hex(std::string_view bytes);

// "vtx[].outputs[].cmu" of "vtx[2].outputs[0].cmu", "bytes[]" of "bytes[17]": the same for every element.
std::string path_without_indexes(std::string_view path);

}  // namespace ztape
