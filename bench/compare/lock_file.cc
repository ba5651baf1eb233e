#include "bench/compare/lock_file.h"

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

#include "bench/compare/comparison_file.h"
#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/file_lock.h"
#include "ps/net/endpoint.h"

namespace syncopate::bench {

namespace fs = std::filesystem;

std::optional<LockFile> LockFile::try_to_take(const fs::path& path) {
  FileLock lock = try_lock_file(path);
  if (lock.outcome == FileLock::Outcome::kTaken) return std::nullopt;
  if (lock.outcome == FileLock::Outcome::kUnsupported) {
    std::error_code ignored;
    fs::remove(path, ignored);
    throw UsageError(
        fmt::format("--share-runs: the file system of {} has no locks; choose another folder, or "
                    "leave --share-runs out",
                    path.parent_path().string()));
  }
  return LockFile(path, std::move(lock.file));
}

LockFile::LockFile(fs::path path, FileDescriptor file)
    : path_(std::move(path)), file_(std::move(file)) {
  const std::string holder = fmt::format("process {} on host {}", ::getpid(), own_host_name());
  if (::ftruncate(file_.get(), 0) != 0 ||
      write_all(file_, std::as_bytes(std::span(holder))) < holder.size()) {
    throw FileError(describe_errno("write", path_.string(), errno));
  }
}

// Only the holder removes the file. A process that opened it before finds with is_in_place() that
// its lock is on a removed file, and tries again (try_lock_file()).
LockFile::~LockFile() {
  if (file_) ::unlink(path_.c_str());
}

void LockFile::renew() const noexcept { ::futimens(file_.get(), nullptr); }

std::string LockFile::holder_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string holder;
  return std::getline(in, holder) ? holder : "another process";
}

std::optional<LockFile> lock_report_files(const CompareOptions& options,
                                          const StopSignal& signals) {
  constexpr std::chrono::milliseconds kPollInterval(20);
  if (options.shared_command.empty()) return std::nullopt;
  make_report_folder(options.report, options.report);
  const fs::path path = options.report / ".report.lock";
  for (const Deadline deadline = Deadline::after(kLockTimeout);;) {
    if (auto lock = LockFile::try_to_take(path)) return lock;
    if (signals.was_asked()) throw std::runtime_error(kStoppedWords);
    if (deadline.passed()) {
      throw PeerError(fmt::format(
          "--share-runs: {} has locked {} for {}; end that process and repeat the command",
          LockFile::holder_of(path), path.string(), in_seconds(kLockTimeout)));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace syncopate::bench
