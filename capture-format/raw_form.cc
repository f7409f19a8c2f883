#include "capture-format/raw_form.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace ztape {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kChunksSuffix = ".chunks.tsv";
constexpr std::string_view kResetName = "ECONNRESET";

Error system_error(const std::string& path) {
  return {ErrorCode::io, std::strerror(errno), path};
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::unexpected(system_error(path));
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

template <typename Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

std::vector<std::string_view> split(std::string_view row, char by) {
  std::vector<std::string_view> columns;
  for (std::size_t at = 0; at <= row.size();) {
    const auto end = std::min(row.find(by, at), row.size());
    columns.push_back(row.substr(at, end - at));
    at = end + 1;
  }
  return columns;
}

// false: the row is none.
bool parse_row(std::string_view row, RawConnection& connection) {
  const auto columns = split(row, '\t');
  int64_t time_ns = 0;
  if (columns.size() < 2 || !parse_number(columns[0], time_ns)) return false;
  if (columns[1] == "close") {
    connection.close_ns = time_ns;
    return true;
  }
  if (columns.size() < 3) return false;
  RawRead read;
  read.time_ns = time_ns;
  if (columns[1] == name(Direction::client_to_server)) {
    read.direction = Direction::client_to_server;
  } else if (columns[1] == name(Direction::server_to_client)) {
    read.direction = Direction::server_to_client;
  } else {
    return false;
  }
  if (columns[2] == "eof") {
    read.end = capture::FIN;
  } else if (columns[2].starts_with("err:")) {
    read.error = columns[2].substr(4);
    read.end = read.error == kResetName ? capture::RESET : capture::FAILED;
  } else if (!parse_number(columns[2], read.length)) {
    return false;
  }
  connection.reads.push_back(std::move(read));
  return true;
}

Result<RawConnection> load_connection(const std::string& stem, uint64_t number) {
  RawConnection connection;
  connection.number = number;
  for (const Direction direction : kDirections) {
    auto bytes = read_file(stem + "." + std::string(name(direction)));
    if (!bytes) return std::unexpected(bytes.error());
    connection.bytes[index(direction)] = std::move(*bytes);
  }
  const std::string table = stem + std::string(kChunksSuffix);
  const auto rows = read_file(table);
  if (!rows) return std::unexpected(rows.error());
  std::istringstream lines(*rows);
  int line = 0;
  uint64_t sums[2] = {0, 0};
  for (std::string row; std::getline(lines, row);) {
    ++line;
    const auto reads_before = connection.reads.size();
    if (!parse_row(row, connection)) {
      return std::unexpected(Error{
          ErrorCode::usage, "line " + std::to_string(line) + " is not a row of time, direction and length", table});
    }
    if (connection.reads.size() > reads_before)
      sums[index(connection.reads.back().direction)] += connection.reads.back().length;
  }
  for (const Direction direction : kDirections) {
    if (sums[index(direction)] == connection.bytes[index(direction)].size()) continue;
    return std::unexpected(Error{ErrorCode::usage,
                                 "its lengths sum up to " + std::to_string(sums[index(direction)]) + " bytes, but " +
                                     stem + "." + std::string(name(direction)) + " has " +
                                     std::to_string(connection.bytes[index(direction)].size()),
                                 table});
  }
  return connection;
}

}  // namespace

Result<std::vector<RawConnection>> load_raw(const std::string& folder) {
  std::vector<uint64_t> numbers;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::string file = entry.path().filename();
    uint64_t number = 0;
    constexpr std::string_view kPrefix = "connection";
    if (!file.starts_with(kPrefix) || !file.ends_with(kChunksSuffix)) continue;
    const std::string_view digits(file.data() + kPrefix.size(), file.size() - kPrefix.size() - kChunksSuffix.size());
    if (parse_number(digits, number) && number > 0) numbers.push_back(number);
  }
  if (error) return std::unexpected(Error{ErrorCode::io, error.message(), folder});
  if (numbers.empty()) {
    return std::unexpected(Error{ErrorCode::usage, "there is no connectionN.chunks.tsv in it", folder});
  }
  std::ranges::sort(numbers);
  std::vector<RawConnection> connections;
  for (const uint64_t number : numbers) {
    auto connection = load_connection(folder + "/connection" + std::to_string(number), number);
    if (!connection) return std::unexpected(connection.error());
    connections.push_back(std::move(*connection));
  }
  return connections;
}

struct RawWriter::Files {
  std::string stem;
  std::FILE* bytes[2] = {nullptr, nullptr};
  std::FILE* table = nullptr;
  uint64_t next_offset[2] = {0, 0};
  int64_t open_ns = 0;

  ~Files() {
    for (auto* file : {bytes[0], bytes[1], table}) {
      if (file) std::fclose(file);
    }
  }

  Result<std::FILE*> create(const std::string& path, bool overwrite) const {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (overwrite ? O_TRUNC : O_EXCL), 0600);
    if (fd < 0) {
      if (errno == EEXIST)
        return std::unexpected(Error{ErrorCode::usage, "exists already; --force overwrites it", path});
      return std::unexpected(system_error(path));
    }
    return ::fdopen(fd, "wb");
  }

  // Writes what stdio still holds, so that a full disk is noticed.
  Result<void> close() {
    for (auto** file : {&bytes[0], &bytes[1], &table}) {
      std::FILE* const closing = *file;
      *file = nullptr;
      if (closing && std::fclose(closing) != 0) return std::unexpected(system_error(stem));
    }
    return {};
  }
};

RawWriter::RawWriter(std::string folder, bool overwrite) : folder_(std::move(folder)), overwrite_(overwrite) {}
RawWriter::~RawWriter() = default;

Result<RawWriter::Files*> RawWriter::files_of(uint64_t connection) {
  if (const auto found = open_.find(connection); found != open_.end()) return found->second.get();
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return std::unexpected(system_error(folder_));
  auto files = std::make_unique<Files>();
  files->stem = folder_ + "/connection" + std::to_string(connection);
  for (const Direction direction : kDirections) {
    auto file = files->create(files->stem + "." + std::string(name(direction)), overwrite_);
    if (!file) return std::unexpected(file.error());
    files->bytes[index(direction)] = *file;
  }
  auto table = files->create(files->stem + std::string(kChunksSuffix), overwrite_);
  if (!table) return std::unexpected(table.error());
  files->table = *table;
  ++connections_;
  return (open_[connection] = std::move(files)).get();
}

Result<void> RawWriter::append_chunk(const capture::Chunk& chunk) {
  auto found = files_of(chunk.connection());
  if (!found) return std::unexpected(found.error());
  Files& files = **found;
  const auto direction = static_cast<Direction>(chunk.direction());
  auto& next = files.next_offset[index(direction)];
  if (chunk.offset() != next) {
    holes_.push_back("connection " + std::to_string(chunk.connection()) + " " + std::string(name(direction)) +
                     ": bytes " + std::to_string(next) + " to " + std::to_string(chunk.offset()) +
                     " are not in the capture");
  }
  next = chunk.offset() + chunk.bytes().size();
  const long long time_ns = chunk.time_ns() - files.open_ns;
  const std::string word(name(direction));
  bool written = true;
  if (!chunk.bytes().empty()) {
    written = std::fwrite(chunk.bytes().data(), 1, chunk.bytes().size(), files.bytes[index(direction)]) ==
                  chunk.bytes().size() &&
              std::fprintf(files.table, "%lld\t%s\t%zu\n", time_ns, word.c_str(), chunk.bytes().size()) > 0;
  }
  if (written && chunk.end() == capture::FIN)
    written = std::fprintf(files.table, "%lld\t%s\teof\n", time_ns, word.c_str()) > 0;
  if (written && (chunk.end() == capture::RESET || chunk.end() == capture::FAILED)) {
    const std::string error = chunk.end() == capture::RESET ? std::string(kResetName) : chunk.error();
    written = std::fprintf(files.table, "%lld\t%s\terr:%s\n", time_ns, word.c_str(), error.c_str()) > 0;
  }
  if (!written) return std::unexpected(system_error(files.stem));
  return {};
}

Result<void> RawWriter::append_state(const capture::ConnectionState& state) {
  if (!state.continued()) return {};
  auto found = files_of(state.connection());
  if (!found) return std::unexpected(found.error());
  auto& next = (*found)->next_offset;
  const uint64_t begins[] = {state.client_to_server().offset(), state.server_to_client().offset()};
  // The next file of a run that is read as one.
  if (next[0] == begins[0] && next[1] == begins[1]) return {};
  if (next[0] == 0 && next[1] == 0) {
    beginnings_.push_back("connection " + std::to_string(state.connection()) +
                          " began in an earlier file: " + std::to_string(begins[0]) + " bytes of " +
                          std::string(name(Direction::client_to_server)) + " and " + std::to_string(begins[1]) +
                          " of " + std::string(name(Direction::server_to_client)) + " are there");
    next[0] = begins[0];
    next[1] = begins[1];
  }
  return {};
}

Result<void> RawWriter::append(const capture::Record& record) {
  switch (record.kind_case()) {
    case capture::Record::kConnectionOpen: {
      auto files = files_of(record.connection_open().connection());
      if (!files) return std::unexpected(files.error());
      (*files)->open_ns = record.connection_open().time_ns();
      return {};
    }
    case capture::Record::kConnectionState: return append_state(record.connection_state());
    case capture::Record::kChunk: return append_chunk(record.chunk());
    case capture::Record::kConnectionClose: {
      auto files = files_of(record.connection_close().connection());
      if (!files) return std::unexpected(files.error());
      const long long time_ns = record.connection_close().time_ns() - (*files)->open_ns;
      if (std::fprintf((*files)->table, "%lld\tclose\t\n", time_ns) < 0)
        return std::unexpected(system_error((*files)->stem));
      auto closed = (*files)->close();
      open_.erase(record.connection_close().connection());
      return closed;
    }
    default: return {};
  }
}

Result<void> RawWriter::finish() {
  for (auto& [number, files] : open_) {
    if (auto closed = files->close(); !closed) return closed;
  }
  open_.clear();
  return {};
}

}  // namespace ztape
