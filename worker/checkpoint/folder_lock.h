// A lock that reserves a folder for one run. It is a lock on the file .lock in the folder, which
// contains the name of the holder. The tasks of one job may share the lock; the folder then stays
// locked while at least one of them lives.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "models/base/file_descriptor.h"

namespace syncopate {

struct FolderLockOptions {
  std::string flag;  // the flag that names the folder, "--checkpoint-dir"
  std::string user;  // the noun for the holder in messages: "run"
  // A text that identifies the job; tasks with the same text share the lock. "": the lock is not
  // shared.
  std::string job{};
  std::chrono::milliseconds timeout{0};  // how long to wait until another holder releases the lock
  // The timeout if the holder of the lock is on another host; used if it is longer than `timeout`.
  // A network file system keeps the locks of a failed host for some time.
  std::chrono::milliseconds timeout_for_another_host{0};
  // Called once if FolderLock has to wait for another holder, before it waits. line: a message for
  // the log.
  std::function<void(const std::string& line)> on_waiting{};
};

class FolderLock {
 public:
  // Takes the lock of a folder, which must exist. If the file system does not support locks, logs a
  // warning and continues without a lock. Throws UsageError naming the holder if the lock is held.
  // Throws FileError if the lock file cannot be opened or written.
  FolderLock(const std::filesystem::path& folder, const FolderLockOptions& options);

  // Takes the lock again, with a warning, if the folder or its lock file was removed during the
  // run; creates the folder if necessary. Call it before each write, because otherwise another run
  // could lock a folder that this run has created again. Throws UsageError naming the holder if
  // another run holds the lock; throws FileError.
  void renew();

  // Returns the lock file of a folder.
  static std::filesystem::path file_in(const std::filesystem::path& folder);

  // Returns the message of the error that the constructor would throw now if the lock were not
  // shared with another task; nullopt if the lock is free or the state of the lock cannot be read.
  static std::optional<std::string> refusal(const std::filesystem::path& folder,
                                            const FolderLockOptions& options);

 private:
  std::filesystem::path folder_;
  FolderLockOptions options_;
  FileDescriptor file_;  // empty on a file system without locks
};

}  // namespace syncopate
