#include "cli/account.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace ztape::cli {
namespace {

std::unexpected<Error> failed(ErrorCode code, const std::string& subject, const std::string& message) {
  return std::unexpected(Error{.code = code, .message = message, .subject = subject});
}

bool is_already(const Account& account) {
  return getuid() == account.uid && geteuid() == account.uid;
}

}  // namespace

Result<Account> find_account(const std::string& name) {
  std::vector<char> room(16 * 1024);
  passwd entry{};
  passwd* found = nullptr;
  int error = 0;
  while ((error = getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found)) == ERANGE) {
    room.resize(room.size() * 2);
  }
  const auto subject = "--user " + name;
  if (!found) return failed(ErrorCode::usage, subject, error == 0 ? "there is no such user" : std::strerror(error));
  Account account{.name = name, .uid = found->pw_uid, .gid = found->pw_gid};
  if (geteuid() != 0 && !is_already(account)) {
    return failed(ErrorCode::usage, subject,
                  "only root can become another user, and this runs with uid " + std::to_string(geteuid()));
  }
  return account;
}

Result<void> become(const Account& account) {
  if (is_already(account) && geteuid() != 0) return {};
  const auto subject = "--user " + account.name;
  const auto refused = [&](const std::string& call) {
    return failed(ErrorCode::io, subject, call + ": " + std::strerror(errno));
  };
  // The groups and the group first: afterwards there is no right to change them. glibc changes every thread.
  if (initgroups(account.name.c_str(), account.gid) != 0) return refused("initgroups");
  if (setresgid(account.gid, account.gid, account.gid) != 0) return refused("setresgid");
  if (setresuid(account.uid, account.uid, account.uid) != 0) return refused("setresuid");
  if (account.uid != 0 && (setuid(0) == 0 || seteuid(0) == 0)) {
    return failed(ErrorCode::io, subject, "the way back to root is still open");
  }
  return {};
}

Result<void> check_folder(const std::string& folder, const Account& account) {
  constexpr int kNotBecome = 255;  // no errno is that large
  const pid_t child = fork();
  if (child < 0) return failed(ErrorCode::io, "fork", std::strerror(errno));
  if (child == 0) {
    if (!become(account)) _exit(kNotBecome);
    _exit(faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int error = WIFEXITED(status) ? WEXITSTATUS(status) : kNotBecome;
  if (error == 0) return {};
  const auto who = "--user " + account.name;
  if (error == kNotBecome) return failed(ErrorCode::io, who, "this process cannot become that user");
  return failed(ErrorCode::usage, folder,
                account.name + " cannot make files there (" + std::strerror(error) + "), and --rotate-bytes does, as " +
                    who + ": chown " + account.name + " that folder, or record into another");
}

Result<void> give_file(const std::string& path, const Account& account) {
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid == account.uid) return {};
  if (lchown(path.c_str(), account.uid, account.gid) == 0) return {};
  return failed(ErrorCode::io, path, "cannot be given to " + account.name + ": " + std::strerror(errno));
}

}  // namespace ztape::cli
