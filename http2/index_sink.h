// Makes the index records of a connection out of what a ConnectionReader finds: Frame, Headers, and a ConnectionState
// where a direction cannot be followed any more, so that a reader of the file need not find that out again.
#pragma once

#include <functional>

#include "http2/connection_reader.h"
#include "proto/capture.pb.h"

namespace ztape::http2 {

class IndexSink : public ReaderSink {
 public:
  // Called for each record, in the order of the bytes; the reference is valid during the call only.
  using OnRecord = std::function<void(const capture::Record&)>;

  IndexSink(ConnectionId connection, OnRecord on_record);

  void on_frame(const Frame& frame) override;
  void on_headers(const Frame& frame, const HeaderList& fields, bool end_stream, bool readable) override;
  void on_unreadable(const Unreadable& lost) override;

 private:
  ConnectionId connection_;
  OnRecord on_record_;
  // Used again for each, so that what they allocate is allocated once.
  capture::Record frame_record_;
  capture::Record headers_record_;
};

}  // namespace ztape::http2
