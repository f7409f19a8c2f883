#include "capture-format/byte_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ztape {
namespace {

// A writer that is alive writes a block every 100 ms while it has something to write, so a file that has not grown for
// so long may be asked whose it is.
constexpr std::chrono::milliseconds kIdle{500};

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
  source.pipe_ = true;
  source.growing_ = true;
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
      forgotten_(other.forgotten_),
      size_(other.size_),
      fd_(std::exchange(other.fd_, -1)),
      owned_(other.owned_),
      pipe_(other.pipe_),
      growing_(other.growing_),
      idle_(other.idle_) {}

ByteSource::~ByteSource() {
  if (fd_ >= 0 && owned_) close(fd_);
}

Result<void> ByteSource::grow(std::chrono::milliseconds at_most) {
  if (!growing_) return {};
  return pipe_ ? grow_pipe(at_most) : grow_file(at_most);
}

Result<void> ByteSource::grow_pipe(std::chrono::milliseconds at_most) {
  constexpr std::size_t kPiece = 64 * 1024;
  pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, static_cast<int>(at_most.count())) <= 0) return {};
  const std::size_t held = bytes_.size();
  bytes_.resize(held + kPiece);
  const ssize_t got = ::read(fd_, bytes_.data() + held, kPiece);
  const int number = errno;
  bytes_.resize(held + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0 && (number == EINTR || number == EAGAIN)) return {};
  if (got <= 0) growing_ = false;
  if (got < 0) return std::unexpected(system_error("cannot be read", name_, number));
  size_ += static_cast<uint64_t>(got);
  return {};
}

Result<void> ByteSource::grow_file(std::chrono::milliseconds at_most) {
  struct stat status{};
  const auto look = [&]() -> Result<bool> {
    if (fstat(fd_, &status) != 0) return std::unexpected(system_error("cannot be read", name_, errno));
    const auto now = static_cast<uint64_t>(status.st_size);
    if (now < size_) {
      growing_ = false;
      return std::unexpected(Error{.code = ErrorCode::torn,
                                   .message = "became shorter while it was read: another recording began in it",
                                   .subject = name_});
    }
    const bool grew = now > size_;
    size_ = now;
    return grew;
  };
  auto grew = look();
  if (grew && !*grew) {
    poll(nullptr, 0, static_cast<int>(at_most.count()));
    idle_ += at_most;
    grew = look();
    if (grew && !*grew && idle_ >= kIdle && writer_is_gone()) {
      growing_ = false;
      grew = look();  // what it wrote before it let go
    }
  }
  if (!grew) return std::unexpected(std::move(grew.error()));
  if (*grew) idle_ = std::chrono::milliseconds(0);
  return {};
}

// The lock is taken for a moment to see whether it is free. Where a file system has no locks nobody can know.
bool ByteSource::writer_is_gone() const {
  if (flock(fd_, LOCK_SH | LOCK_NB) != 0) return false;
  flock(fd_, LOCK_UN);
  return true;
}

void ByteSource::forget_before(uint64_t offset) {
  // Moving what is left costs as much as it frees: only when that is the smaller part.
  if (!pipe_ || offset <= forgotten_ || offset - forgotten_ < bytes_.size() / 2) return;
  const auto gone = std::min<uint64_t>(offset - forgotten_, bytes_.size());
  bytes_.erase(0, gone);
  forgotten_ += gone;
}

Result<void> ByteSource::read(uint64_t offset, uint64_t length, std::vector<uint8_t>& into) const {
  const uint64_t there = offset >= size_ ? 0 : std::min(length, size_ - offset);
  into.resize(there);
  if (there == 0) return {};
  if (pipe_ || fd_ < 0) {
    if (offset < forgotten_) {
      into.clear();
      return {};
    }
    std::memcpy(into.data(), bytes_.data() + (offset - forgotten_), there);
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
