#include "capture-format/output_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace ztape {
namespace {

constexpr std::size_t kSectorBytes = WriteBehind::kSectorBytes;
// What is worth a write behind; what waits in memory is no more than this and a block.
constexpr std::size_t kBehindBytes = 1024 * 1024;
// Below this a direct write waits longer for the disk than it saves.
constexpr std::size_t kLeastDirectBytes = 128 * 1024;

// Allocated in steps, so that it is a call now and then.
constexpr uint64_t kAllocationBytes = 8 * 1024 * 1024;

// RLIMIT_FSIZE, which allocating does not ask for. Anybody may change it at any time: prlimit(1).
uint64_t size_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

bool is_no_room(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

}  // namespace

void OutputFile::Free::operator()(uint8_t* buffer) const {
  std::free(buffer);
}

Result<std::unique_ptr<OutputFile>> OutputFile::create(const std::string& path, bool overwrite) {
  std::unique_ptr<OutputFile> file(new OutputFile);
  if (path == "-") {
    file->name_ = "stdout";
    file->fd_ = STDOUT_FILENO;
    return file;
  }
  file->name_ = path;
  file->fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (overwrite ? 0 : O_EXCL), S_IRUSR | S_IWUSR);
  if (file->fd_ < 0 && errno == EEXIST) {
    return std::unexpected(Error{.code = ErrorCode::usage, .message = "the file exists already", .subject = path});
  }
  if (file->fd_ < 0) return file->failed("cannot be created", errno);
  file->owned_ = true;
  struct stat status{};
  file->regular_ = fstat(file->fd_, &status) == 0 && S_ISREG(status.st_mode);
  file->can_allocate_ = file->regular_;
  // Two writers would spoil each other's capture. A file system without locks is taken as it is.
  if (file->regular_ && flock(file->fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return std::unexpected(
        Error{.code = ErrorCode::usage, .message = "another program is writing it", .subject = path});
  }
  if (overwrite && file->regular_) {
    // A file that was there before keeps the mode it had, and a capture is not for others' eyes.
    fchmod(file->fd_, S_IRUSR | S_IWUSR);
    if (ftruncate(file->fd_, 0) != 0) return file->failed("cannot be emptied", errno);
  }
  return file;
}

OutputFile::~OutputFile() {
  [[maybe_unused]] const auto done = flush();  // nobody is left to tell
  behind_.reset();
  if (owned_ && fd_ >= 0) ::close(fd_);
}

void OutputFile::Buffer::grow(std::size_t wanted, std::size_t kept) {
  if (wanted <= capacity) return;
  wanted = (wanted + kSectorBytes - 1) / kSectorBytes * kSectorBytes;
  auto* larger = static_cast<uint8_t*>(std::aligned_alloc(kSectorBytes, wanted));
  if (larger == nullptr) throw std::bad_alloc();
  std::copy_n(bytes.get(), kept, larger);
  bytes.reset(larger);
  capacity = wanted;
}

uint8_t* OutputFile::room(std::size_t size, std::size_t kept) {
  buffer_.grow(buffer_.filled + size, buffer_.filled + kept);
  return buffer_.bytes.get() + buffer_.filled;
}

Result<void> OutputFile::commit(std::size_t size) {
  if (error_ != 0) return broken();
  buffer_.filled += size;
  size_ += size;
  // What the disk has promised to take may wait.
  if (regular_ && size_ <= allocated_) {
    return buffer_.filled >= kBehindBytes ? write_behind() : Result<void>();
  }
  if (auto done = flush(); !done) {
    // What the disk took of this block is of no use: the file then ends as it ended before.
    if (error_ == 0) {
      buffer_.filled -= size;
      size_ -= size;
      in_file_ = std::min(in_file_, size_);
      cut(in_file_);
    }
    return done;
  }
  return {};
}

// The whole sectors, while the other buffer takes what follows them.
Result<void> OutputFile::write_behind() {
  if (auto done = wait(); !done) return done;
  const uint64_t first = size_ - buffer_.filled;
  const std::size_t whole = buffer_.filled / kSectorBytes * kSectorBytes;
  if (!behind_) behind_ = std::make_unique<WriteBehind>(fd_);
  other_.grow(buffer_.filled - whole, 0);
  other_.filled = buffer_.filled - whole;
  std::copy_n(buffer_.bytes.get() + whole, other_.filled, other_.bytes.get());
  std::swap(buffer_, other_);
  behind_->submit(other_.bytes.get(), whole, first);
  behind_to_ = first + whole;
  return {};
}

Result<void> OutputFile::wait() {
  if (error_ == 0 && behind_to_ > 0) {
    error_ = behind_->wait();
    if (error_ == 0) in_file_ = std::max(in_file_, behind_to_);
    behind_to_ = 0;
  }
  if (error_ != 0) return broken();
  return {};
}

Result<void> OutputFile::flush() {
  if (auto done = wait(); !done) return done;
  if (regular_ && size_ <= allocated_ && size_ - in_file_ >= kLeastDirectBytes) {
    if (auto done = write_behind(); !done) return done;
    if (auto done = wait(); !done) return done;
  }
  const uint64_t first = size_ - buffer_.filled;
  if (auto done = write(buffer_.bytes.get() + (in_file_ - first), size_ - in_file_); !done) return done;
  // The last sector stays, incomplete as it is, for the next direct write.
  const std::size_t whole = regular_ ? buffer_.filled / kSectorBytes * kSectorBytes : buffer_.filled;
  buffer_.filled -= whole;
  if (whole > 0) std::memmove(buffer_.bytes.get(), buffer_.bytes.get() + whole, buffer_.filled);
  return {};
}

uint64_t OutputFile::in_file() {
  if (behind_to_ > 0 && !behind_->busy()) {
    [[maybe_unused]] const auto done = wait();  // an error stays
  }
  return in_file_;
}

Result<void> OutputFile::keep_room(std::size_t bytes) {
  if (!regular_) return {};
  if (size_ + bytes > size_limit()) return failed("cannot be written", EFBIG);
  if (!can_allocate_ || size_ + bytes <= allocated_) return {};
  if (allocate(bytes + kAllocationBytes)) return {};
  return allocate(bytes);
}

Result<void> OutputFile::allocate(uint64_t bytes) {
  int error = 0;
  do {
    error = fallocate(fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_), static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (is_no_room(error)) return failed("cannot be written", error);
  can_allocate_ = error == 0;  // otherwise the file system does not know it
  if (error == 0) allocated_ = size_ + bytes;
  return {};
}

// Gives up what was allocated behind it, too.
void OutputFile::cut(uint64_t size) {
  if (!regular_) return;
  [[maybe_unused]] const int done = ftruncate(fd_, static_cast<off_t>(size));
  allocated_ = 0;
}

// What follows in_file_.
Result<void> OutputFile::write(const uint8_t* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t done =
        regular_ ? ::pwrite(fd_, bytes, size, static_cast<off_t>(in_file_)) : ::write(fd_, bytes, size);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
      poll(&ready, 1, -1);
      continue;
    }
    if (done < 0) return failed("cannot be written", errno);
    in_file_ += static_cast<uint64_t>(done);
    bytes += done;
    size -= static_cast<std::size_t>(done);
  }
  return {};
}

Result<void> OutputFile::close() {
  if (auto done = flush(); !done) return done;
  if (!owned_) return {};
  behind_.reset();
  if (allocated_ > size_) cut(size_);
  if (struct stat status{}; regular_ && fstat(fd_, &status) == 0 && status.st_nlink == 0) {
    return std::unexpected(Error{.code = ErrorCode::io,
                                 .message = "was deleted while it was being written: nothing of it is left",
                                 .subject = name_});
  }
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) return failed("cannot be closed", errno);
  return {};
}

void OutputFile::remove(const std::string& path) const {
  if (regular_) unlink(path.c_str());
}

// What was written behind is not there though the disk had promised room for it: there is no trying again.
std::unexpected<Error> OutputFile::broken() const {
  auto error = failed("cannot be written", error_);
  error.error().code = ErrorCode::io;
  return error;
}

// It went well up to what is in the file.
std::unexpected<Error> OutputFile::failed(const std::string& what, int error) const {
  // What a pipe or a device took of a block before is out of reach: there is no trying again.
  return std::unexpected(Error{.code = regular_ && is_no_room(error) ? ErrorCode::no_room : ErrorCode::io,
                               .message = what + ": " + std::strerror(error),
                               .subject = name_,
                               .offset = in_file_});
}

}  // namespace ztape
