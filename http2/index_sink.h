// Makes the index records of a connection out of what a ConnectionReader finds: Frame, Headers, and a ConnectionState
// where a direction cannot be followed any more, so that a reader of the file need not find that out again.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "http2/connection_reader.h"
#include "proto/encoded_record.h"

namespace ztape::http2 {

class IndexSink : public ReaderSink {
 public:
  // Called for each record, in the order of the bytes; what is given is valid during the call only.
  using OnRecord = std::function<void(const EncodedRecord&)>;

  IndexSink(ConnectionId connection, OnRecord on_record);

  void on_frame(const Frame& frame) override;
  void on_headers(const Frame& frame, const HeaderList& fields, bool end_stream, bool readable) override;
  void on_unreadable(const Unreadable& lost) override;

 private:
  uint8_t* room(std::size_t size);

  ConnectionId connection_;
  OnRecord on_record_;
  std::vector<uint8_t> bytes_;  // used again for each
};

}  // namespace ztape::http2
