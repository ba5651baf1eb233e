// Locks between the processes that share the runs of a comparison (--share-runs). A process locks a
// run while it trains the run, and the report while it writes the description or the pages.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "bench/compare/compare_options.h"
#include "models/base/file_descriptor.h"
#include "worker/train/stop_signal.h"

namespace syncopate::bench {

// The reason that compare() gives after a request to stop.
inline constexpr const char* kStoppedWords =
    "stopped; the same command continues with the missing runs";
// A living holder of a lock renews it more often than this, also under load. On a network file
// system, other hosts see the renewal up to a minute late, and locks of a host that went down stay
// for 90 s by default.
inline constexpr std::chrono::minutes kLockTimeout(5);

// A lock on a file that exists only while it is locked. The kernel releases the lock when the
// process dies; the file then stays until it is locked the next time. One thread at a time.
class LockFile {
 public:
  // Returns nullopt if another process, or another object of this one, holds the lock. Throws
  // UsageError if the file system has no locks. Throws FileError.
  static std::optional<LockFile> try_to_take(const std::filesystem::path& path);
  // Returns the holder, such as "process 12 on host n1", from the file of a lock.
  static std::string holder_of(const std::filesystem::path& path);

  LockFile(LockFile&&) = default;
  LockFile& operator=(LockFile&&) = delete;
  ~LockFile();

  // Sets the time of the file, which shows waiting processes that the holder is alive.
  void renew() const noexcept;

 private:
  LockFile(std::filesystem::path path, FileDescriptor file);

  std::filesystem::path path_;
  FileDescriptor file_;
};

// Locks the files of the report, except those of runs, if processes share them; otherwise returns
// nullopt. Waits up to kLockTimeout for other processes, which hold the lock for seconds. Throws
// PeerError after that time, std::runtime_error after a request to stop, FileError, and what
// LockFile::try_to_take() throws.
std::optional<LockFile> lock_report_files(const CompareOptions& options, const StopSignal& signals);

}  // namespace syncopate::bench
