// ztape import: makes a capture out of connections in the raw form.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "capture-format/raw_form.h"
#include "capture-format/writer.h"
#include "cli/command.h"
#include "http2/connection_reader.h"
#include "http2/index_sink.h"
#include "net/loop.h"

namespace ztape::cli {
namespace {

// The connections share no clock, so each one's opening is the capture's own: time 0.
class Importer {
 public:
  Importer(const RawConnection& raw, CaptureWriter& writer)
      : raw_(raw),
        writer_(writer),
        index_(raw.number, [this](const EncodedRecord& record) { keep(writer_.append_encoded(record)); }),
        reader_(index_) {}

  Result<void> run() {
    open();
    for (const auto& read : raw_.reads) {
      chunk(read);
      if (!result_) return result_;
    }
    if (raw_.close_ns >= 0) {
      capture::ConnectionClose close;
      close.set_connection(raw_.number);
      close.set_time_ns(raw_.close_ns);
      close.set_first_side(first_side());
      keep(writer_.append_close(std::move(close)));
    }
    return result_;
  }

 private:
  void open() {
    capture::Record record;
    record.mutable_connection_open()->set_connection(raw_.number);
    record.mutable_connection_open()->set_time_source("import of the raw form: the connections share no clock");
    keep(writer_.append(record));
  }

  void chunk(const RawRead& read) {
    ChunkView chunk;
    chunk.connection = raw_.number;
    chunk.direction = read.direction;
    chunk.offset = offsets_[index(read.direction)];
    chunk.time_ns = read.time_ns;
    chunk.end = read.end;
    chunk.error = read.error;
    const auto& bytes = raw_.bytes[index(read.direction)];
    chunk.bytes = {reinterpret_cast<const uint8_t*>(bytes.data()) + chunk.offset, read.length};
    offsets_[index(read.direction)] += read.length;
    keep(writer_.append_chunk(chunk));
    reader_.read(read.direction, chunk.bytes, read.time_ns);
  }

  [[nodiscard]] capture::Side first_side() const {
    const auto first =
        std::ranges::find_if(raw_.reads, [](const auto& read) { return read.end != capture::NOT_ENDED; });
    if (first == raw_.reads.end()) return capture::SIDE_UNKNOWN;
    return first->direction == Direction::client_to_server ? capture::DOWNSTREAM : capture::UPSTREAM;
  }

  void keep(Result<void> result) {
    if (result_ && !result) result_ = std::move(result);
  }

  const RawConnection& raw_;
  CaptureWriter& writer_;
  http2::IndexSink index_;
  http2::ConnectionReader reader_;
  uint64_t offsets_[2] = {0, 0};
  Result<void> result_;
};

Result<void> import_all(const std::vector<RawConnection>& connections, const std::string& file, bool overwrite,
                        int64_t recorded_unix_ns) {
  capture::CaptureStart start;
  start.set_tool_version(ZTAPE_VERSION);
  start.set_source("import of the raw form");
  start.mutable_opened()->set_realtime_unix_ns(recorded_unix_ns);
  auto writer = CaptureWriter::create(file, std::move(start), {.overwrite = overwrite, .compression_level = 19});
  if (!writer) return std::unexpected(writer.error());
  for (const auto& connection : connections) {
    if (auto imported = Importer(connection, **writer).run(); !imported) return imported;
  }
  return (*writer)->finish();
}

}  // namespace

int run_import(int argc, char** argv) {
  cxxopts::Options options(
      "ztape import", "Makes a capture out of a folder in the raw form, as `ztape export --format raw` writes it.");
  options.positional_help("DIR").add_options()("dir", "the folder with connectionN.chunks.tsv and its bytes",
                                               cxxopts::value<std::string>(), "DIR")(
      "w,write", "the capture to write, - for stdout", cxxopts::value<std::string>(), "FILE")(
      "recorded-at", "when it was recorded, in seconds since 1970 (default: now)", cxxopts::value<int64_t>(),
      "SECONDS")("force", "overwrite an existing file");
  options.parse_positional({"dir"});
  const auto parsed = parse(options, argc, argv, "ztape import sync.raw -w sync.ztape");
  if (!parsed) return parsed.error();
  if (!parsed->count("dir")) return fail("import", {ErrorCode::usage, "which folder? ztape import DIR -w FILE", ""});
  if (!parsed->count("write")) return fail("import", {ErrorCode::usage, "where to? -w FILE names the capture", ""});
  const auto connections = load_raw((*parsed)["dir"].as<std::string>());
  if (!connections) return fail("import", connections.error());
  int64_t recorded_unix_ns = net::wall_now().unix_ns;
  if (parsed->count("recorded-at")) {
    constexpr int64_t kSecond = 1'000'000'000;
    constexpr int64_t kMostSeconds = 9'000'000'000;  // the year 2255: nanoseconds in an int64_t end soon after
    const auto seconds = (*parsed)["recorded-at"].as<int64_t>();
    if (seconds < 0 || seconds > kMostSeconds) {
      return fail("import",
                  {ErrorCode::usage, "0 to " + std::to_string(kMostSeconds) + " are possible", "--recorded-at"});
    }
    recorded_unix_ns = seconds * kSecond;
  }
  const auto file = (*parsed)["write"].as<std::string>();
  if (auto imported = import_all(*connections, file, parsed->count("force") > 0, recorded_unix_ns); !imported) {
    return fail("import", imported.error());
  }
  if (file != "-") std::printf("%zu connections imported to %s\n", connections->size(), file.c_str());
  return kDone;
}

}  // namespace ztape::cli
