// The Python example, which has no code of ours, reads what the writer wrote.
#include <zlib.h>

#include <cstdio>

#include "tests/capture-format/sample.h"
#include "tests/support/child_process.h"
#include "tests/support/fixture.h"
#include "tests/support/temporary_directory.h"

namespace ztape {
namespace {

constexpr const char* kPython = "/usr/bin/python3";  // the one that Debian's python3-zstandard is for

std::string line_of(Direction direction, const std::string& bytes) {
  char line[100];
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
  std::snprintf(line, sizeof line, "  %s: %zu bytes, crc32 %08lx\n", std::string(name(direction)).c_str(), bytes.size(),
                crc);
  return line;
}

TEST(ExampleScript, ReadsWhatARealSessionCarried) {
  if (test::run({kPython, "-c", "import zstandard, google.protobuf"}).status != 0) {
    GTEST_SKIP() << "needs python3-zstandard and python3-protobuf";
  }
  test::TemporaryDirectory folder;
  const auto path = folder.file("a.ztape");
  std::string expected;
  auto writer = CaptureWriter::create(path, sample::start(), {.block_bytes = 4096});
  for (const auto& connection : test::load_fixture("lightwalletd-grpcurl")) {
    const auto id = static_cast<ConnectionId>(connection.number);
    ASSERT_TRUE((*writer)->append(sample::open_record(id, 1)));
    int frames = 0;
    int headers = 0;
    for (const auto& chunk : connection.chunks) {
      const auto bytes = sample::span_of(connection.bytes[index(chunk.direction)]).subspan(chunk.offset, chunk.length);
      ASSERT_TRUE((*writer)->append_chunk({.connection = id,
                                           .direction = chunk.direction,
                                           .offset = chunk.offset,
                                           .time_ns = chunk.time_ns,
                                           .bytes = bytes,
                                           .end = chunk.eof ? capture::FIN : capture::NOT_ENDED}));
      // As many as the script must count; what is in them is the recorder's business.
      capture::Record frame;
      frame.mutable_frame()->set_connection(id);
      ASSERT_TRUE((*writer)->append(frame));
      ++frames;
      if (frames % 3 != 0) continue;
      capture::Record list;
      list.mutable_headers()->set_connection(id);
      ASSERT_TRUE((*writer)->append(list));
      ++headers;
    }
    expected += "connection " + std::to_string(id) + ": " + std::to_string(frames) + " frames, " +
                std::to_string(headers) + " headers\n";
    for (const auto direction : kDirections) expected += line_of(direction, connection.bytes[index(direction)]);
  }
  ASSERT_TRUE((*writer)->finish());
  ASSERT_GT(sample::read_all(path).blocks, 3u);

  const auto protoc = test::run(
      {ZTAPE_PROTOC, "--proto_path=" ZTAPE_SOURCE_DIR "/proto", "--python_out=" + folder.path(), "capture.proto"});
  ASSERT_EQ(protoc.status, 0) << protoc.err;
  const std::string example = ZTAPE_SOURCE_DIR "/capture-format/examples/read_capture.py";
  const auto script = test::run({"/usr/bin/env", "PYTHONPATH=" + folder.path(), kPython, example, path});
  EXPECT_EQ(script.status, 0) << script.err;
  EXPECT_EQ(script.out, expected);
}

}  // namespace
}  // namespace ztape
