// What verify proves and what it finds, where the file itself is whole.
#include "capture-format/verify.h"

#include <xxhash.h>

#include "capture-format/layout.h"
#include "tests/capture-format/sample.h"
#include "tests/support/temporary_directory.h"

namespace ztape {
namespace {

using sample::chunk_record;
constexpr auto kUp = Direction::client_to_server;
constexpr auto kDown = Direction::server_to_client;

class Verify : public testing::Test {
 protected:
  test::TemporaryDirectory folder_;
  std::string path_ = folder_.file("a.ztape");
  std::unique_ptr<CaptureWriter> writer_ = std::move(*CaptureWriter::create(path_, sample::start()));

  void append(const capture::Record& record) { ASSERT_TRUE(writer_->append(record).has_value()); }
  void open(ConnectionId connection) { append(sample::open_record(connection, 1)); }
  void close(ConnectionId connection) {
    capture::ConnectionClose close;
    close.set_connection(connection);
    ASSERT_TRUE(writer_->append_close(close).has_value());
  }
  void gap(ConnectionId connection, Direction direction, uint64_t offset, uint64_t bytes) {
    capture::Record record;
    record.mutable_gap()->set_connection(connection);
    record.mutable_gap()->set_direction(direction == kDown ? capture::SERVER_TO_CLIENT : capture::CLIENT_TO_SERVER);
    record.mutable_gap()->set_offset(offset);
    record.mutable_gap()->set_bytes(bytes);
    append(record);
  }
  VerifyReport finish() {
    EXPECT_TRUE(writer_->finish().has_value());
    auto report = verify(path_);
    EXPECT_TRUE(report.has_value());
    EXPECT_TRUE(report->damage.empty());
    return *report;
  }
};

TEST_F(Verify, ProvesClosedConnectionsAndCountsOpenOnes) {
  open(1);
  open(2);
  append(chunk_record(1, kUp, 0, 2, "abc"));
  append(chunk_record(2, kDown, 0, 3, "defg"));
  append(chunk_record(1, kUp, 3, 4, "d", capture::FIN));
  close(1);
  const auto report = finish();
  EXPECT_EQ(report.connections, 2u);
  EXPECT_EQ(report.connections_proven, 1u);
  EXPECT_EQ(report.connections_open, 1u);
  EXPECT_EQ(report.chunk_bytes, 8u);
  EXPECT_EQ(report.records, 7u);
  EXPECT_TRUE(report.faults.empty());
  EXPECT_FALSE(report.corrupt());
}

TEST_F(Verify, AHoleInTheOffsetsIsAFault) {
  open(1);
  append(chunk_record(1, kUp, 0, 2, "abc"));
  append(chunk_record(1, kUp, 5, 2, "abc"));
  close(1);
  const auto report = finish();
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_EQ(report.faults[0].message, "client_to_server: the bytes from 3 to 5 are missing, and no Gap says why");
  EXPECT_EQ(report.connections_proven, 0u);
  EXPECT_TRUE(report.corrupt());
}

TEST_F(Verify, AGapExplainsAHoleBeforeOrAfterIt) {
  for (const bool before : {true, false}) {
    const ConnectionId connection = before ? 1 : 2;
    open(connection);
    append(chunk_record(connection, kDown, 0, 2, "abc"));
    if (before) gap(connection, kDown, 3, 100);
    append(chunk_record(connection, kDown, 103, 2, "abc"));
    if (!before) gap(connection, kDown, 3, 100);
    close(connection);
  }
  const auto report = finish();
  EXPECT_TRUE(report.faults.empty()) << report.faults.front().message;
  EXPECT_EQ(report.connections_proven, 2u);
  EXPECT_EQ(report.connections_with_gaps, 2u);
  EXPECT_EQ(report.gaps, 2u);
  EXPECT_EQ(report.gap_bytes, 200u);
}

TEST_F(Verify, AGapThatIsTooSmallDoesNotExplainTheRest) {
  open(1);
  append(chunk_record(1, kDown, 0, 2, "abc"));
  gap(1, kDown, 3, 50);
  append(chunk_record(1, kDown, 103, 2, "abc"));
  const auto report = finish();
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_EQ(report.faults[0].message, "server_to_client: the bytes from 53 to 103 are missing, and no Gap says why");
}

TEST_F(Verify, BytesThatAreThereTwiceAreAFault) {
  open(1);
  append(chunk_record(1, kUp, 0, 2, "abc"));
  append(chunk_record(1, kUp, 1, 2, "bc"));
  EXPECT_TRUE(finish().corrupt());
}

TEST_F(Verify, AWrongCountHashOrEndIsAFault) {
  const auto with = [this](ConnectionId connection, uint64_t bytes, uint64_t hash, capture::End end) {
    open(connection);
    append(chunk_record(connection, kUp, 0, 2, "abc", capture::FIN));
    capture::Record record;
    auto& closing = *record.mutable_connection_close();
    closing.set_connection(connection);
    closing.mutable_client_to_server()->set_bytes(bytes);
    closing.mutable_client_to_server()->set_xxh3_64(hash);
    closing.mutable_client_to_server()->set_end(end);
    closing.mutable_server_to_client()->set_xxh3_64(XXH3_64bits("", 0));
    append(record);
  };
  const uint64_t right = XXH3_64bits("abc", 3);
  with(1, 3, right, capture::FIN);
  with(2, 4, right, capture::FIN);
  with(3, 3, right + 1, capture::FIN);
  with(4, 3, right, capture::RESET);
  const auto report = finish();
  EXPECT_EQ(report.connections_proven, 1u);
  ASSERT_EQ(report.faults.size(), 3u);
  EXPECT_EQ(report.faults[0].message, "client_to_server: 3 bytes are here, 4 were recorded");
  EXPECT_EQ(report.faults[1].message, "client_to_server: the bytes do not match their hash");
  EXPECT_EQ(report.faults[2].message, "client_to_server: the chunks end with FIN, the connection with RESET");
}

TEST_F(Verify, ChunksOutsideTheirConnectionAreFaults) {
  append(chunk_record(5, kUp, 0, 2, "early"));
  open(6);
  close(6);
  append(chunk_record(6, kUp, 0, 2, "late"));
  const auto report = finish();
  ASSERT_EQ(report.faults.size(), 2u);
  EXPECT_EQ(report.faults[0].message, "bytes before it was opened");
  EXPECT_EQ(report.faults[1].message, "bytes after its ConnectionClose");
}

TEST_F(Verify, AConnectionOfAnEarlierFileGoesOnAtItsState) {
  capture::Record state;
  state.mutable_connection_state()->set_connection(9);
  state.mutable_connection_state()->mutable_client_to_server()->set_offset(1000);
  append(state);
  append(chunk_record(9, kUp, 1000, 2, "abc"));
  close(9);
  const auto report = finish();
  EXPECT_TRUE(report.faults.empty());
  EXPECT_EQ(report.connections, 0u);
  EXPECT_EQ(report.connections_proven, 1u);
}

TEST(VerifyOpen, WhatIsNotACaptureIsSaidSo) {
  test::TemporaryDirectory folder;
  const auto code = [&folder](const std::string& bytes) {
    sample::write_file(folder.file("x"), bytes);
    const auto report = verify(folder.file("x"));
    EXPECT_FALSE(report.has_value());
    return report ? ErrorCode::usage : report.error().code;
  };
  EXPECT_EQ(code(""), ErrorCode::not_a_capture);
  EXPECT_EQ(code("some text\n"), ErrorCode::not_a_capture);
  EXPECT_EQ(code(std::string("\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00", 9)), ErrorCode::not_a_capture);
  EXPECT_EQ(code(std::string(100'000, 'z')), ErrorCode::not_a_capture);
  EXPECT_EQ(code(sample::noise(3'000'000, 4)), ErrorCode::not_a_capture);
}

TEST(VerifyOpen, WhatCannotBeReadIsAnIoErrorWithTheSystemsWords) {
  const auto missing = verify("/nowhere/at/all.ztape");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::io);
  EXPECT_EQ(missing.error().line(), "/nowhere/at/all.ztape: cannot be opened: No such file or directory");
  const auto folder = verify("/tmp");
  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(folder.error().code, ErrorCode::io);
  EXPECT_NE(folder.error().message.find("Is a directory"), std::string::npos);
}

TEST(VerifyOpen, ANewerVersionIsNotTakenForDamage) {
  // A header of a version to come: larger, and with its own checksum where every version has it.
  auto old = layout::encode({});
  std::string header(old.begin(), old.end() - 8);
  header += "more fields";
  header[4] = static_cast<char>(header.size());
  header[12] = 2;
  const uint64_t checksum = XXH3_64bits(header.data(), header.size());
  for (int i = 0; i < 8; ++i) header.push_back(static_cast<char>(checksum >> (8 * i)));
  const auto newer = CaptureReader::open_bytes(header + "whatever", "newer.ztape");
  ASSERT_FALSE(newer.has_value());
  EXPECT_EQ(newer.error().code, ErrorCode::unsupported_version);
  EXPECT_EQ(newer.error().line(), "newer.ztape: is a capture of format version 2; this program reads version 1");
  header[30] ^= 1;
  EXPECT_NE(CaptureReader::open_bytes(header, "newer.ztape").error().code, ErrorCode::unsupported_version);
}

}  // namespace
}  // namespace ztape
