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

// Direct I/O wants offsets, lengths and memory aligned to the device's logical block (open(2), O_DIRECT): 512 or 4096.
constexpr std::size_t kSectorBytes = 4096;
// Below this a direct write waits longer for the disk than it saves.
constexpr std::size_t kLeastDirectBytes = 128 * 1024;

// Allocated in steps, so that it is a call now and then.
constexpr uint64_t kAllocationBytes = 1024 * 1024;

// RLIMIT_FSIZE, which allocating does not ask for. Anybody may change it at any time: prlimit(1).
uint64_t size_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

bool is_no_room(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

}  // namespace

void OutputFile::FreeBuffer::operator()(uint8_t* buffer) const {
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
  file->can_go_direct_ = file->regular_;
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
  if (owned_ && fd_ >= 0) ::close(fd_);
}

uint8_t* OutputFile::room(std::size_t size) {
  const std::size_t wanted = (tail_ + size + kSectorBytes - 1) / kSectorBytes * kSectorBytes;
  if (wanted > capacity_) {
    auto* larger = static_cast<uint8_t*>(std::aligned_alloc(kSectorBytes, wanted));
    if (larger == nullptr) throw std::bad_alloc();
    std::copy_n(buffer_.get(), tail_, larger);
    buffer_.reset(larger);
    capacity_ = wanted;
  }
  return buffer_.get() + tail_;
}

Result<void> OutputFile::commit(std::size_t size, bool bulk) {
  const std::size_t filled = tail_ + size;
  const uint64_t first = size_ - tail_;  // of the buffer, in the file
  const std::size_t whole = filled / kSectorBytes * kSectorBytes;
  std::size_t written = tail_;
  if (bulk && whole >= kLeastDirectBytes && set_direct(true)) {
    if (auto done = write(buffer_.get(), whole, first, true); !done) return done;
    written = whole;
  }
  // The end of what went direct, less than a sector, goes through the cache too: a block of which the disk takes no
  // more is a failed one. The next direct write puts the same bytes there again.
  if (auto done = write(buffer_.get() + written, filled - written, first + written, false); !done) return done;
  size_ += size;
  keep_tail(filled);
  return {};
}

void OutputFile::keep_tail(std::size_t filled) {
  const std::size_t whole = regular_ ? filled / kSectorBytes * kSectorBytes : filled;
  tail_ = filled - whole;
  if (whole > 0) std::memmove(buffer_.get(), buffer_.get() + whole, tail_);
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
  [[maybe_unused]] const int done = ftruncate(fd_, static_cast<off_t>(size));
  allocated_ = 0;
}

bool OutputFile::set_direct(bool on) {
  if (on && !can_go_direct_) return false;
  if (on == direct_) return true;
  const int flags = fcntl(fd_, F_GETFL);
  if (flags < 0 || fcntl(fd_, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) != 0) {
    can_go_direct_ = false;  // the file system refuses it
    return !on;
  }
  direct_ = on;
  return true;
}

Result<void> OutputFile::write(const uint8_t* bytes, std::size_t size, uint64_t offset, bool direct) {
  if (!direct) set_direct(false);
  while (size > 0) {
    const ssize_t done = regular_ ? ::pwrite(fd_, bytes, size, static_cast<off_t>(offset)) : ::write(fd_, bytes, size);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
      poll(&ready, 1, -1);
      continue;
    }
    if (done < 0 && errno == EINVAL && direct_) {  // refused only now
      set_direct(false);
      can_go_direct_ = false;
      continue;
    }
    if (done < 0) {
      const int error = errno;
      // What a full disk took of this block is of no use: the file then ends with its last whole block. The sector
      // that stood there before may have been written anew, with the same bytes.
      if (regular_) cut(size_);
      return failed("cannot be written", error);
    }
    offset += static_cast<uint64_t>(done);
    bytes += done;
    size -= static_cast<std::size_t>(done);
    // The disk took a part that ends within a sector: the rest is no direct write any more.
    if (direct_ && size > 0 && offset % kSectorBytes != 0) set_direct(false);
  }
  return {};
}

Result<void> OutputFile::sync() {
  // A pipe or a terminal has nothing to sync.
  if (fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS) return failed("cannot be synced", errno);
  return {};
}

Result<void> OutputFile::close() {
  if (!owned_) return {};
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

std::unexpected<Error> OutputFile::failed(const std::string& what, int error) const {
  // What a pipe or a device took of a block before is out of reach: there is no trying again.
  return std::unexpected(Error{.code = regular_ && is_no_room(error) ? ErrorCode::no_room : ErrorCode::io,
                               .message = what + ": " + std::strerror(error),
                               .subject = name_,
                               .offset = size_});
}

}  // namespace ztape
