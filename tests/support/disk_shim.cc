// Preloaded into `ztape` (LD_PRELOAD): makes the disk of its captures, and its wall clock, misbehave as the file named
// by ZTAPE_SHIM says, a word and a value a line; a missing file is a good disk. Read anew at every call.
//
//   write ENOSPC   writing and allocating fail so         sync EIO     fdatasync fails so
//   limit 100000   ENOSPC behind that offset of a file    stall 1      writing waits until that is gone
//   wall -5000000000   CLOCK_REALTIME is so many ns off         sync-stall 1   fdatasync waits so
//   no-fallocate 1     the file system cannot allocate
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// The value behind a word in the control file, or false.
bool wish(const char* word, char* value, std::size_t size) {
  const char* const path = std::getenv("ZTAPE_SHIM");
  if (path == nullptr) return false;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[512];
  const ssize_t length = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (length <= 0) return false;
  text[length] = '\0';
  char* rest = nullptr;
  for (char* line = strtok_r(text, "\n", &rest); line != nullptr; line = strtok_r(nullptr, "\n", &rest)) {
    const std::size_t wordlength = std::strlen(word);
    if (std::strncmp(line, word, wordlength) != 0 || line[wordlength] != ' ') continue;
    std::snprintf(value, size, "%s", line + wordlength + 1);
    return true;
  }
  return false;
}

bool is_capture(int fd) {
  char link[64];
  char path[1024];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof(path) - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  return std::strstr(path, ".ztape") != nullptr;
}

int error_of(const char* name) {
  if (std::strcmp(name, "ENOSPC") == 0) return ENOSPC;
  if (std::strcmp(name, "EDQUOT") == 0) return EDQUOT;
  if (std::strcmp(name, "EFBIG") == 0) return EFBIG;
  return EIO;
}

// 0, or the error that the wish is. Comes back once nothing stalls.
int trouble(int fd) {
  if (!is_capture(fd)) return 0;
  char value[64];
  const timespec nap{.tv_sec = 0, .tv_nsec = 2'000'000};
  while (wish("stall", value, sizeof value)) nanosleep(&nap, nullptr);
  return wish("write", value, sizeof value) ? error_of(value) : 0;
}

// How many of `size` bytes at `offset` a disk of limited size takes.
std::size_t fitting(int fd, off_t offset, std::size_t size) {
  char value[64];
  if (!is_capture(fd) || !wish("limit", value, sizeof value)) return size;
  const long long limit = std::atoll(value);
  if (offset >= limit) return 0;
  const auto room = static_cast<std::size_t>(limit - offset);
  return room < size ? room : size;
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  if (const int error = trouble(fd)) return errno = error, -1;
  return syscall(SYS_write, fd, bytes, size);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  if (const int error = trouble(fd)) return errno = error, -1;
  const size_t taken = fitting(fd, offset, size);
  if (taken == 0 && size > 0) return errno = ENOSPC, -1;
  // A part that is no whole sector cannot go past the page cache.
  const int flags = fcntl(fd, F_GETFL);
  if (taken < size && (flags & O_DIRECT)) fcntl(fd, F_SETFL, flags & ~O_DIRECT);
  return syscall(SYS_pwrite64, fd, bytes, taken, offset);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off_t offset) {
  return pwrite(fd, bytes, size, offset);
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
  char value[64];
  if (is_capture(fd) && wish("no-fallocate", value, sizeof value)) return errno = EOPNOTSUPP, -1;
  if (const int error = trouble(fd)) return errno = error, -1;
  if (fitting(fd, offset, static_cast<size_t>(length)) < static_cast<size_t>(length)) return errno = ENOSPC, -1;
  return static_cast<int>(syscall(SYS_fallocate, fd, mode, offset, length));
}

int fallocate64(int fd, int mode, off_t offset, off_t length) {
  return fallocate(fd, mode, offset, length);
}

int fdatasync(int fd) {
  char value[64];
  const timespec nap{.tv_sec = 0, .tv_nsec = 2'000'000};
  while (is_capture(fd) && wish("sync-stall", value, sizeof value)) nanosleep(&nap, nullptr);
  if (is_capture(fd) && wish("sync", value, sizeof value)) return errno = error_of(value), -1;
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  char value[64];
  if (result != 0 || clock != CLOCK_REALTIME || !wish("wall", value, sizeof value)) return result;
  const long long ns = time->tv_sec * 1'000'000'000LL + time->tv_nsec + std::atoll(value);
  time->tv_sec = ns / 1'000'000'000;
  time->tv_nsec = ns % 1'000'000'000;
  return result;
}

}  // extern "C"
