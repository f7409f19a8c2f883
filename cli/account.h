// The user a daemon goes on as once it has what needs root.
#pragma once

#include <sys/types.h>

#include <string>

#include "proto/error.h"

namespace ztape::cli {

struct Account {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
};

// Errors: usage, where there is no such user, or this process may not become it.
Result<Account> find_account(const std::string& name);

// All threads of the process go on as this user, with its groups and without a way back. A process that is that user
// already is left as it is. Errors: io; then the process may be half changed and has to end.
Result<void> become(const Account& account);

// That the user can make files in a folder, and delete them: seen by a process that becomes that user. Best called
// before there are other threads. Errors: usage, with what to do; io.
Result<void> check_folder(const std::string& folder, const Account& account);

// Gives a regular file to the user, so that it can be opened, renamed or removed again later. Others are left alone.
Result<void> give_file(const std::string& path, const Account& account);

}  // namespace ztape::cli
