// The index records, which are encoded by hand, against protobuf's own encoder and against what the reader found.
#include <gtest/gtest.h>

#include <limits>

#include "http2/connection_reader.h"
#include "http2/fan_out.h"
#include "http2/index_sink.h"
#include "proto/capture.pb.h"
#include "tests/support/calls.h"
#include "tests/support/fixture.h"
#include "tests/wire/fixture_test_name.h"

namespace ztape::test {
namespace {

capture::Record parsed(const EncodedRecord& encoded) {
  capture::Record record;
  EXPECT_TRUE(record.ParseFromArray(encoded.bytes.data(), static_cast<int>(encoded.bytes.size())));
  const std::string given(encoded.bytes.begin(), encoded.bytes.end());
  EXPECT_TRUE(record.SerializeAsString() == given) << record.ShortDebugString();
  return record;
}

// What the reader found, by protobuf's setters.
struct Expected : http2::ReaderSink {
  void on_frame(const http2::Frame& frame) override {
    auto& out = *records.emplace_back().mutable_frame();
    out.set_connection(7);
    out.set_direction(static_cast<capture::Direction>(frame.direction));
    out.set_offset(frame.offset);
    out.set_stream(frame.stream);
    out.set_type(frame.type);
    out.set_flags(frame.flags);
    out.set_length(frame.length);
    out.set_first_byte_ns(frame.first_byte_ns);
    out.set_last_byte_ns(frame.last_byte_ns);
  }
  void on_headers(const http2::Frame& frame, const http2::HeaderList& fields, bool end_stream, bool readable) override {
    if (!readable) return;
    auto& out = *records.emplace_back().mutable_headers();
    out.set_connection(7);
    out.set_direction(static_cast<capture::Direction>(frame.direction));
    out.set_offset(frame.offset);
    out.set_stream(frame.stream);
    out.set_time_ns(frame.last_byte_ns);
    out.set_end_stream(end_stream);
    for (const auto& field : fields) {
      auto& added = *out.add_fields();
      added.set_name(field.name);
      added.set_value(field.value);
    }
  }
  std::vector<capture::Record> records;
};

class IndexOfFixture : public testing::TestWithParam<std::string> {};

TEST_P(IndexOfFixture, IsWhatTheReaderFoundAsProtobufWritesIt) {
  for (const auto& connection : load_fixture(GetParam())) {
    Expected expected;
    std::vector<std::string> records;
    http2::IndexSink index(7, [&](const EncodedRecord& encoded) {
      const auto record = parsed(encoded);
      records.push_back(record.SerializeAsString());
      EXPECT_EQ(encoded.last_ns, record.has_frame() ? record.frame().last_byte_ns() : record.headers().time_ns());
      EXPECT_EQ(encoded.first_ns, record.has_frame() ? record.frame().first_byte_ns() : record.headers().time_ns());
    });
    http2::FanOut both{&expected, &index};
    http2::ConnectionReader reader(both);
    for (const auto& piece : pieces_of(connection)) {
      reader.read(piece.direction, {reinterpret_cast<const uint8_t*>(piece.bytes.data()), piece.bytes.size()},
                  piece.time_ns);
    }
    ASSERT_EQ(records.size(), expected.records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
      ASSERT_EQ(records[i], expected.records[i].SerializeAsString()) << expected.records[i].ShortDebugString();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, IndexOfFixture, testing::ValuesIn(fixture_names()), fixture_test_name);

TEST(Index, HasTheSmallestAndTheLargestOfEverything) {
  std::vector<capture::Record> records;
  http2::IndexSink index(std::numeric_limits<uint64_t>::max(),
                         [&](const EncodedRecord& encoded) { records.push_back(parsed(encoded)); });
  http2::Frame frame;
  index.on_frame(frame);
  index.on_headers(frame, {}, false, true);
  index.on_headers(frame, {{"", ""}, {"name", ""}, {"", "value"}, {std::string(20'000, 'n'), std::string(300, 'v')}},
                   true, true);
  frame.direction = Direction::server_to_client;
  frame.offset = std::numeric_limits<uint64_t>::max();
  frame.stream = std::numeric_limits<uint32_t>::max();
  frame.type = 0xff;
  frame.flags = 0xff;
  frame.length = 0xffffff;
  frame.first_byte_ns = -1;
  frame.last_byte_ns = std::numeric_limits<int64_t>::min();
  index.on_frame(frame);
  index.on_headers(frame, {}, true, false);  // not readable: no record
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[2].headers().fields_size(), 4);
  EXPECT_EQ(records[2].headers().fields(3).name().size(), 20'000U);
  EXPECT_EQ(records[3].frame().last_byte_ns(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(records[3].frame().length(), 0xffffffU);
}

TEST(Index, SaysFromWhereADirectionCannotBeRead) {
  std::vector<capture::Record> records;
  http2::IndexSink index(7, [&](const EncodedRecord& encoded) {
    records.push_back(parsed(encoded));
    EXPECT_EQ(encoded.first_ns, 5);
  });
  index.on_unreadable({.direction = Direction::server_to_client,
                       .offset = 9,
                       .time_ns = 5,
                       .reason = "garbage",
                       .headers_only = false});
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].connection_state().server_to_client().offset(), 9U);
  EXPECT_EQ(records[0].connection_state().server_to_client().unreadable_reason(), "garbage");
}

}  // namespace
}  // namespace ztape::test
