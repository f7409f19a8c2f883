#include "proxy/capture_run.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "capture-format/run_files.h"

namespace ztape::proxy {
namespace {

namespace fs = std::filesystem;

constexpr int kMostTries = 1000;  // of numbers that somebody else has taken meanwhile

std::string random_name() {
  uint64_t numbers[2] = {0, 0};
  [[maybe_unused]] const auto size = getrandom(numbers, sizeof(numbers), 0);
  char text[40];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(numbers[0]),
                static_cast<unsigned long long>(numbers[1]));
  return text;
}

fs::path folder_of(const std::string& path) {
  const auto folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

// A file system that cannot do that is taken as it is.
void sync_folder(const std::string& path) {
  const int fd = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  ::close(fd);
}

}  // namespace

std::string CaptureRun::path_of(uint64_t number) const {
  return rotates() ? run_name(options_.path).path(number) : options_.path;
}

Result<std::unique_ptr<CaptureRun>> CaptureRun::begin(CaptureRunOptions options) {
  std::unique_ptr<CaptureRun> run(new CaptureRun(std::move(options)));
  if (!run->rotates()) return run;
  run->options_.start.set_run(random_name());
  if (run->options_.overwrite) return run;
  if (auto fine = run->check_that_none_is_there(); !fine) return std::unexpected(std::move(fine.error()));
  return run;
}

// Files of an earlier run in between would make "by name" not "by time".
Result<void> CaptureRun::check_that_none_is_there() const {
  const auto there = files_of(run_name(options_.path));  // of a folder that cannot be read the making of a file tells
  if (there.empty()) return {};
  return std::unexpected(
      Error{.code = ErrorCode::usage, .message = "the file exists already", .subject = there.front().path});
}

Result<std::unique_ptr<CaptureWriter>> CaptureRun::create_next() {
  Result<std::unique_ptr<CaptureWriter>> file = std::unexpected(Error{});
  uint64_t number = number_;
  auto start = options_.start;
  if (rotates()) start.set_file_number(static_cast<uint32_t>(in_run_ + 1));
  for (int i = 0; i < kMostTries; ++i) {
    path_ = path_of(++number);
    file = CaptureWriter::create(path_, start,
                                 {.overwrite = options_.overwrite,
                                  .compression_level = options_.compression_level,
                                  .block_bytes = options_.block_bytes,
                                  .keep_room_for_the_end = true});
    // Somebody else has made a file of that name since we began: not ours to overwrite.
    const bool taken = in_run_ > 0 && !file && file.error().code == ErrorCode::usage;
    if (!taken) break;
  }
  if (!file) {
    if (!files_.empty()) path_ = files_.back().path;
    return file;
  }
  number_ = number;
  ++in_run_;
  struct stat status{};
  fstat((*file)->descriptor(), &status);
  files_.push_back({path_, status.st_dev, status.st_ino});
  if (options_.sync && S_ISREG(status.st_mode)) sync_folder(path_);
  return file;
}

Result<void> CaptureRun::delete_old() {
  Result<void> result;
  while (options_.keep > 0 && files_.size() > options_.keep) {
    const File file = std::move(files_.front());
    files_.pop_front();
    struct stat status{};
    if (lstat(file.path.c_str(), &status) != 0) continue;  // moved away or deleted: fine
    if (status.st_dev != file.device || status.st_ino != file.inode) continue;
    if (unlink(file.path.c_str()) == 0) {
      ++deleted_;
    } else {
      result = std::unexpected(Error{.code = ErrorCode::io,
                                     .message = std::string("cannot be deleted: ") + std::strerror(errno),
                                     .subject = file.path});
    }
  }
  return result;
}

}  // namespace ztape::proxy
