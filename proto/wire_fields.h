// The protobuf wire format by hand, for the few records that a recorder writes by the million (Chunk, Frame, Headers):
// as protobuf writes them, a field that has its default left out.
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <cstddef>
#include <cstdint>

namespace ztape {

inline std::size_t varint_size(uint64_t value) {
  return google::protobuf::io::CodedOutputStream::VarintSize64(value);
}

inline uint8_t* put_varint(uint64_t value, uint8_t* at) {
  return google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, at);
}

// Field numbers below 16: a tag is one byte. int64 fields are given as two's complement, as they are written.
inline std::size_t varint_field_size(uint64_t value) {
  return value == 0 ? 0 : 1 + varint_size(value);
}

inline uint8_t* put_varint_field(int number, uint64_t value, uint8_t* at) {
  if (value == 0) return at;
  *at++ = static_cast<uint8_t>(number << 3);
  return put_varint(value, at);
}

// A field of bytes or a message, with its content: also where that is empty.
inline std::size_t length_field_size(std::size_t length) {
  return 1 + varint_size(length) + length;
}

// What stands before the content.
inline uint8_t* put_length_head(int number, std::size_t length, uint8_t* at) {
  *at++ = static_cast<uint8_t>(number << 3 | 2);
  return put_varint(length, at);
}

}  // namespace ztape
