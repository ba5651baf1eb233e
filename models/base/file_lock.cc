#include "models/base/file_lock.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/log.h"

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

namespace {

// Returns the process of this host that holds a lock on the file; 0 if it is not known. Source:
// proc_locks(5), "1: FLOCK ADVISORY WRITE 3548 08:01:28457 0 EOF", device numbers in hexadecimal.
pid_t holder_of(const struct stat& file) {
  const std::string wanted =
      fmt::format("{:02x}:{:02x}:{}", major(file.st_dev), minor(file.st_dev), file.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string ignored;
    std::string kind;
    pid_t process = 0;
    std::string place;
    words >> ignored >> kind >> ignored >> ignored >> process >> place;
    if (kind == "FLOCK" && place == wanted) return process;
  }
  return 0;
}

constexpr const char* kTakenAdvice = "; wait for its end, or give another one";

// Returns the words for a file or a folder that has a writer. subject: the flag and the path.
std::string file_taken_words(std::string_view subject, const std::filesystem::path& path,
                             pid_t holder) {
  std::error_code ignored;
  return fmt::format(
      "{}: another run writes this {} ({})", subject,
      std::filesystem::is_directory(path, ignored) ? "folder" : "file",
      holder > 0 ? fmt::format("process {}", holder) : "on another host or in a container");
}

int lock_without_wait(const FileDescriptor& file, int kind) {
  int failed = 0;
  do {
    failed = ::flock(file.get(), kind | LOCK_NB);
  } while (failed != 0 && errno == EINTR);
  return failed;
}

}  // namespace

FileLock try_lock_file(const std::filesystem::path& path, LockKind kind) {
  constexpr mode_t kBeforeUmask = 0666;
  for (;;) {
    FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kBeforeUmask));
    if (!file) throw FileError(describe_errno("open", path.string(), errno));
    const int wanted = kind == LockKind::kShared ? LOCK_SH : LOCK_EX;
    if (lock_without_wait(file, wanted) == 0) {
      if (is_in_place(file, path)) return {FileLock::Outcome::kHeld, std::move(file)};
      continue;
    }
    if (errno == EWOULDBLOCK) return {FileLock::Outcome::kTaken, {}};
    if (means_unsupported(errno)) return {FileLock::Outcome::kUnsupported, std::move(file)};
    throw FileError(describe_errno("lock", path.string(), errno));
  }
}

void claim_file(const FileDescriptor& file, std::string_view flag,
                const std::filesystem::path& path) {
  constexpr std::chrono::milliseconds kPollInterval(50);
  constexpr std::chrono::seconds kTimeout(10);
  // A network file system keeps the locks of a host that went down, NFS for 90 s by default.
  constexpr std::chrono::seconds kTimeoutForAnotherHost(120);
  struct stat opened {};
  if (::fstat(file.get(), &opened) != 0 || !S_ISREG(opened.st_mode)) return;
  const auto begun = std::chrono::steady_clock::now();
  for (bool has_reported = false; lock_without_wait(file, LOCK_EX) != 0;) {
    if (means_unsupported(errno)) {
      log(LogLevel::kWarning,
          fmt::format("{} {}: its file system has no locks, so a second run that writes the file "
                      "would not be noticed",
                      flag, path.string()));
      return;
    }
    if (errno != EWOULDBLOCK) throw FileError(describe_errno("lock", path.string(), errno));
    const pid_t holder = holder_of(opened);
    const std::chrono::seconds timeout = holder > 0 ? kTimeout : kTimeoutForAnotherHost;
    const std::string words =
        file_taken_words(fmt::format("{} {}", flag, path.string()), path, holder);
    if (std::chrono::steady_clock::now() - begun >= timeout) {
      throw UsageError(words + kTakenAdvice);
    }
    if (!has_reported) {
      log(LogLevel::kWarning, words + "; waiting up to " + in_seconds(timeout) + " for its end");
      has_reported = true;
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  join_claim(file);
}

void claim_empty_file(const FileDescriptor& file, std::string_view flag,
                      const std::filesystem::path& path) {
  claim_file(file, flag, path);
  if (::ftruncate(file.get(), 0) != 0 && errno != EINVAL) {  // EINVAL: a pipe or a device
    throw FileError(describe_errno(fmt::format("empty {}", flag), path.string(), errno));
  }
}

void join_claim(const FileDescriptor& file) noexcept { lock_without_wait(file, LOCK_SH); }

void require_unclaimed(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return;
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat opened {};
  if (!file || ::fstat(file.get(), &opened) != 0) return;
  if (lock_without_wait(file, LOCK_EX) == 0 || errno != EWOULDBLOCK) return;
  throw UsageError(file_taken_words("write " + path.string(), path, holder_of(opened)) +
                   kTakenAdvice);
}

}  // namespace syncopate
