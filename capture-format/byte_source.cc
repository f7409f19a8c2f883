#include "capture-format/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ztape {
namespace {

Error system_error(const std::string& what, const std::string& name, int number) {
  return Error{.code = ErrorCode::io, .message = what + ": " + std::strerror(number), .subject = name};
}

}  // namespace

Result<ByteSource> ByteSource::open(const std::string& path) {
  ByteSource source;
  source.name_ = path == "-" ? "stdin" : path;
  source.owned_ = path != "-";
  source.fd_ = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (source.fd_ < 0) return std::unexpected(system_error("cannot be opened", source.name_, errno));
  struct stat status{};
  if (fstat(source.fd_, &status) != 0) return std::unexpected(system_error("cannot be read", source.name_, errno));
  if (S_ISDIR(status.st_mode)) return std::unexpected(system_error("cannot be read", source.name_, EISDIR));
  // A file given as stdin may stand in its middle; only from its start is it the file.
  if (S_ISREG(status.st_mode) && (source.owned_ || lseek(source.fd_, 0, SEEK_CUR) == 0)) {
    source.size_ = static_cast<uint64_t>(status.st_size);
    return source;
  }
  constexpr std::size_t kPiece = 1 << 16;
  for (;;) {
    const std::size_t held = source.bytes_.size();
    source.bytes_.resize(held + kPiece);
    const ssize_t got = ::read(source.fd_, source.bytes_.data() + held, kPiece);
    const int number = errno;
    source.bytes_.resize(held + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && number != EINTR) return std::unexpected(system_error("cannot be read", source.name_, number));
    if (got == 0) break;
  }
  if (source.owned_) close(source.fd_);
  source.fd_ = -1;
  source.size_ = source.bytes_.size();
  return source;
}

ByteSource ByteSource::of_bytes(std::string bytes, std::string name) {
  ByteSource source;
  source.name_ = std::move(name);
  source.bytes_ = std::move(bytes);
  source.size_ = source.bytes_.size();
  return source;
}

ByteSource::ByteSource(ByteSource&& other) noexcept
    : name_(std::move(other.name_)),
      bytes_(std::move(other.bytes_)),
      size_(other.size_),
      fd_(std::exchange(other.fd_, -1)),
      owned_(other.owned_) {}

ByteSource::~ByteSource() {
  if (fd_ >= 0 && owned_) close(fd_);
}

Result<void> ByteSource::read(uint64_t offset, uint64_t length, std::vector<uint8_t>& into) const {
  const uint64_t there = offset >= size_ ? 0 : std::min(length, size_ - offset);
  into.resize(there);
  if (there == 0) return {};
  if (fd_ < 0) {
    std::memcpy(into.data(), bytes_.data() + offset, there);
    return {};
  }
  std::size_t done = 0;
  while (done < there) {
    const ssize_t got = pread(fd_, into.data() + done, there - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int number = errno;
      into.resize(done);
      auto error = system_error("cannot be read", name_, number);
      error.offset = offset + done;
      return std::unexpected(std::move(error));
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  into.resize(done);
  return {};
}

}  // namespace ztape
