#include "models/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// Returns whether flock(2) failed since the file system has no locks, or since a network file
// system's server has none.
bool means_unsupported(int error) {
  constexpr std::array kUnsupported = {ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL};
  return std::ranges::find(kUnsupported, error) != kUnsupported.end();
}

}  // namespace

bool is_in_place(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat opened {};
  struct stat there {};
  return ::fstat(file.get(), &opened) == 0 && ::stat(path.c_str(), &there) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

FileLock try_lock_file(const std::filesystem::path& path, LockKind kind) {
  constexpr mode_t kBeforeUmask = 0666;
  for (;;) {
    FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kBeforeUmask));
    if (!file) throw FileError(describe_errno("open", path.string(), errno));
    const int wanted = kind == LockKind::kShared ? LOCK_SH : LOCK_EX;
    if (::flock(file.get(), wanted | LOCK_NB) == 0) {
      if (is_in_place(file, path)) return {FileLock::Outcome::kHeld, std::move(file)};
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return {FileLock::Outcome::kTaken, {}};
    if (means_unsupported(errno)) return {FileLock::Outcome::kUnsupported, std::move(file)};
    throw FileError(describe_errno("lock", path.string(), errno));
  }
}

}  // namespace syncopate
