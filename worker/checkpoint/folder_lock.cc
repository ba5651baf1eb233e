#include "worker/checkpoint/folder_lock.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <thread>
#include <utility>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/file_lock.h"
#include "models/base/log.h"
#include "ps/net/endpoint.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLockPollInterval(50);
// A shorter wait for the lock of a folder is not reported, because tasks of one job that start
// together wait for each other briefly.
constexpr std::chrono::milliseconds kNoticeDelay(300);

// The contents of the lock file, one line per field: the process and the run that hold the lock.
struct Holder {
  std::string words;
  std::string host;
  std::string job;
};

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text.data();
}

std::string own_words(const std::string& job) {
  const std::string process = fmt::format("process {}", ::getpid());
  return (job.empty() ? process : "the job of " + process) + " on host " + own_host_name() +
         ", since " + now_text();
}

std::string take_line(std::string& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string::npos) return "";
  std::string line = text.substr(0, end);
  text.erase(0, end + 1);
  return line;
}

Holder read_holder(const FileDescriptor& file) {
  std::array<char, 4096> bytes{};
  const ssize_t size = ::pread(file.get(), bytes.data(), bytes.size(), 0);
  std::string text(bytes.data(), static_cast<std::size_t>(size > 0 ? size : 0));
  Holder holder{take_line(text), take_line(text), take_line(text)};
  if (holder.words.empty()) holder.words = "an unknown process";
  return holder;
}

// Reads the contents of a lock file that another process may hold locked.
Holder read_holder(const fs::path& path) {
  return read_holder(FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)));
}

void write_holder(const FileDescriptor& file, const fs::path& path, const std::string& job) {
  const std::string text = own_words(job) + "\n" + own_host_name() + "\n" + job + "\n";
  const auto size = static_cast<ssize_t>(text.size());
  // The lock file is synced, because on a network file system other hosts would read old contents.
  if (::pwrite(file.get(), text.data(), text.size(), 0) == size &&
      ::ftruncate(file.get(), size) == 0 && (::fsync(file.get()) == 0 || errno == EINVAL)) {
    return;
  }
  throw FileError(describe_errno("write", path.string(), errno));
}

// Tries once to take the lock. Returns nothing when another process has it.
std::optional<FileDescriptor> try_to_hold(const fs::path& path, const FolderLockOptions& options) {
  FileLock lock = try_lock_file(path);
  if (lock.outcome == FileLock::Outcome::kUnsupported) {
    log(LogLevel::kWarning, options.flag + " " + path.parent_path().string() +
                                ": its file system has no locks, so a second " + options.user +
                                " in it would not be noticed");
    return FileDescriptor();
  }
  if (lock.outcome == FileLock::Outcome::kHeld) {
    write_holder(lock.file, path, options.job);
    if (options.job.empty()) return std::move(lock.file);
    // A different process may take the lock while this one turns its exclusive lock into a shared
    // one; then the lock file names that process.
    const bool is_shared = ::flock(lock.file.get(), LOCK_SH | LOCK_NB) == 0;
    if (is_shared && read_holder(lock.file).job == options.job) return std::move(lock.file);
    return std::nullopt;
  }
  if (options.job.empty()) return std::nullopt;
  lock = try_lock_file(path, LockKind::kShared);
  const bool is_ours =
      lock.outcome == FileLock::Outcome::kHeld && read_holder(lock.file).job == options.job;
  if (!is_ours) return std::nullopt;
  return std::move(lock.file);
}

std::string taken_words(const fs::path& folder, const FolderLockOptions& options) {
  return options.flag + " " + folder.string() + ": another " + options.user +
         " is using this folder (" + read_holder(FolderLock::file_in(folder)).words + ")";
}

bool is_elsewhere(const fs::path& folder) {
  const std::string host = read_holder(FolderLock::file_in(folder)).host;
  return !host.empty() && host != own_host_name();
}

std::string refusal_of(const fs::path& folder, const FolderLockOptions& options) {
  return taken_words(folder, options) + "; wait for its end, or choose another folder" +
         (is_elsewhere(folder)
              ? "; if that host is down for certain, remove " + FolderLock::file_in(folder).string()
              : std::string());
}

}  // namespace

fs::path FolderLock::file_in(const fs::path& folder) { return folder / ".lock"; }

FolderLock::FolderLock(const fs::path& folder, const FolderLockOptions& options)
    : folder_(folder), options_(options) {
  const fs::path path = file_in(folder);
  const auto begun = std::chrono::steady_clock::now();
  const Deadline notice_time = Deadline::after(kNoticeDelay);
  for (bool has_reported = false;;) {
    if (auto file = try_to_hold(path, options)) {
      file_ = *std::move(file);
      return;
    }
    const auto timeout = is_elsewhere(folder)
                             ? std::max(options.timeout, options.timeout_for_another_host)
                             : options.timeout;
    if (std::chrono::steady_clock::now() - begun >= timeout) {
      throw UsageError(refusal_of(folder, options));
    }
    if (!has_reported && notice_time.passed() && options.on_waiting) {
      options.on_waiting(taken_words(folder, options) + "; waiting up to " + in_seconds(timeout) +
                         " for its end");
      has_reported = true;
    }
    std::this_thread::sleep_for(kLockPollInterval);
  }
}

void FolderLock::renew() {
  const fs::path path = file_in(folder_);
  if (!file_ || is_in_place(file_, path)) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    throw FileError(fmt::format("{} {}: it was removed and cannot be made again: {}", options_.flag,
                                folder_.string(), error.message()));
  }
  *this = FolderLock(folder_, options_);
  log(LogLevel::kWarning,
      fmt::format(
          "{} {}: {} was removed while this {} used the folder; the folder is locked again, "
          "and what was in it before may be lost",
          options_.flag, folder_.string(), path.string(), options_.user));
}

std::optional<std::string> FolderLock::refusal(const fs::path& folder,
                                               const FolderLockOptions& options) {
  const fs::path path = file_in(folder);
  std::error_code error;
  if (!fs::exists(path, error) || ::access(path.c_str(), W_OK) != 0) return std::nullopt;
  if (try_lock_file(path).outcome != FileLock::Outcome::kTaken) return std::nullopt;
  return refusal_of(folder, options);
}

}  // namespace syncopate
