// The recorder's work on its own clock: what is in the file, and when.
#include "proxy/record_writer.h"

#include <gtest/gtest.h>

#include "capture-format/verify.h"
#include "proto/capture.pb.h"
#include "tests/support/fixture.h"
#include "tests/support/recorded_bytes.h"
#include "tests/support/temporary_directory.h"

namespace ztape::proxy {
namespace {

class RecordWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    CaptureRunOptions run;
    run.path = path_;
    RecordWriterOptions options;
    options.on_problem = [this](const std::string& line) { problems_.push_back(line); };
    auto writer = RecordWriter::start(std::move(run), std::move(options));
    ASSERT_TRUE(writer) << writer.error().line();
    writer_ = std::move(*writer);
  }

  void write(capture::Record record) { writer_->write(QueuedRecord(std::move(record)), now_); }
  void open(ConnectionId id) {
    capture::Record record;
    record.mutable_connection_open()->set_connection(id);
    write(std::move(record));
  }
  void close(ConnectionId id) {
    capture::Record record;
    record.mutable_connection_close()->set_connection(id);
    write(std::move(record));
  }
  void chunk(ConnectionId id, Direction direction, uint64_t offset, std::string_view bytes) {
    QueuedRecord record;
    record.connection = id;
    record.direction = direction;
    record.offset = offset;
    record.time_ns = now_.ns;
    record.bytes = net::Slice::copy_of(bytes);
    writer_->write(record, now_);
  }

  test::TemporaryDirectory folder_;
  std::string path_ = folder_.file("a.ztape");
  MonotonicTime now_{1000};
  std::unique_ptr<RecordWriter> writer_;
  std::vector<std::string> problems_;
};

TEST_F(RecordWriterTest, ABlockIsWrittenWhenItIsOldEnoughAndNotBefore) {
  open(1);
  chunk(1, Direction::client_to_server, 0, "abc");
  now_.ns += kBlockAgeNs - 1;
  writer_->flush_if_due(now_);
  EXPECT_TRUE(test::read_traffic(path_).connections.empty());
  EXPECT_FALSE(writer_->idle());
  now_.ns += 1;
  writer_->flush_if_due(now_);
  EXPECT_TRUE(writer_->idle());
  EXPECT_EQ(test::read_traffic(path_).connections.at(1).bytes[0], "abc");
}

TEST_F(RecordWriterTest, AWalletSessionHasItsIndexAndItsCallsCounted) {
  const auto connection = test::load_fixture("zaino-zingo").front();
  open(1);
  for (const auto& row : connection.chunks) {
    if (row.eof) {
      capture::Record record;
      auto& end = *record.mutable_chunk();
      end.set_connection(1);
      end.set_direction(row.direction == Direction::client_to_server ? capture::CLIENT_TO_SERVER
                                                                     : capture::SERVER_TO_CLIENT);
      end.set_offset(connection.bytes[index(row.direction)].size());
      end.set_end(capture::FIN);
      write(std::move(record));
      continue;
    }
    const std::string_view all = connection.bytes[index(row.direction)];
    chunk(1, row.direction, row.offset, all.substr(row.offset, row.length));
  }
  close(1);
  writer_->finish(now_);
  EXPECT_TRUE(writer_->loss().nothing());
  EXPECT_EQ(writer_->calls().total(), 76u);
  uint64_t ranges = 0;
  for (const auto& [key, outcome] : writer_->calls().rows()) {
    if (key.path == "/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetBlockRange" && key.grpc_status == 0)
      ranges += outcome.calls;
  }
  uint64_t expected = 0;
  for (const auto& call : connection.calls) {
    if (call["method"] == "/cash.z.wallet.sdk.rpc.CompactTxStreamer/GetBlockRange" && call["grpc_status"] == 0)
      ++expected;
  }
  EXPECT_GT(expected, 0u);
  EXPECT_EQ(ranges, expected);
  const auto report = verify(path_);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->connections_proven, 1u);
  EXPECT_FALSE(report->corrupt());
  EXPECT_EQ(test::read_traffic(path_).connections.at(1).header_blocks, 227u);  // 76 and 151 HEADERS, frames.json
}

TEST_F(RecordWriterTest, AGapIsLossAndEndsTheIndexOfItsDirectionOnly) {
  const auto connection = test::load_fixture("zaino-zingo").front();
  open(1);
  chunk(1, Direction::client_to_server, 0, connection.bytes[0].substr(0, 500));
  capture::Record record;
  auto& gap = *record.mutable_gap();
  gap.set_connection(1);
  gap.set_direction(capture::CLIENT_TO_SERVER);
  gap.set_offset(500);
  gap.set_bytes(100);
  gap.set_records(2);
  gap.set_reason("test");
  write(std::move(record));
  chunk(1, Direction::client_to_server, 600, connection.bytes[0].substr(600));
  chunk(1, Direction::server_to_client, 0, connection.bytes[1]);
  close(1);
  writer_->finish(now_);
  EXPECT_EQ(writer_->loss().gaps, 1u);
  EXPECT_EQ(writer_->loss().bytes, 100u);
  EXPECT_EQ(writer_->loss().chunks, 2u);
  const auto traffic = test::read_traffic(path_);
  ASSERT_EQ(traffic.states.size(), 1u);
  EXPECT_TRUE(traffic.states[0].has_client_to_server());
  EXPECT_FALSE(traffic.states[0].client_to_server().readable());
  EXPECT_EQ(traffic.connections.at(1).bytes[1].size(), connection.bytes[1].size());
  EXPECT_GT(traffic.connections.at(1).frames[1].at(0), 80u);
}

}  // namespace
}  // namespace ztape::proxy
