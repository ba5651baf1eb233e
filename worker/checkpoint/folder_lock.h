// A lock that keeps a folder for one run. It is a lock on the file .lock in the folder, and the
// file names its holder. The tasks of one job may hold it together, so that it stays while one of
// them lives.
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
  std::string user;  // what uses the folder, one at a time: "run"
  // A text that identifies the job: tasks with the same text share the lock. "": it is not shared.
  std::string job{};
  std::chrono::milliseconds timeout{0};  // how long to wait for another holder of the lock
  // The timeout if the lock's holder is on another host, when longer than `timeout`: a network
  // file system keeps the locks of a host that went down for some time.
  std::chrono::milliseconds timeout_for_another_host{0};
  std::function<void(const std::string& line)> on_waiting{};  // called once before a wait
};

class FolderLock {
 public:
  // Takes the lock of a folder, which must exist. On a file system without locks the constructor
  // logs a warning and holds nothing. Throws UsageError naming the holder; FileError.
  FolderLock(const std::filesystem::path& folder, const FolderLockOptions& options);

  // Takes the lock again if the folder or its lock file was removed in mid-run, with a warning;
  // makes the folder if necessary. Called before each write, because otherwise another run could
  // take the folder that this one makes again. Throws UsageError naming another holder; FileError.
  void renew();

  // Returns the lock file of a folder.
  static std::filesystem::path file_in(const std::filesystem::path& folder);

  // Returns the error that the constructor would throw now for a lock that is not shared; nothing
  // when the lock is free or its state cannot be read.
  static std::optional<std::string> refusal(const std::filesystem::path& folder,
                                            const FolderLockOptions& options);

 private:
  std::filesystem::path folder_;
  FolderLockOptions options_;
  FileDescriptor file_;  // empty on a file system without locks
};

}  // namespace syncopate
