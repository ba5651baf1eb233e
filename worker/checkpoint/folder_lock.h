// One run at a time in a folder: a lock on the file .lock in it, which says who holds it. The tasks
// of one job may hold it together, so that it stays while any of them lives.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "models/base/file_descriptor.h"

namespace syncopate {

struct FolderLockOptions {
  std::string flag;  // that names the folder: "--checkpoint-dir"
  std::string user;  // of which there is to be one: "run"
  // One line: what the tasks of the job know in common, and those of no other. "": alone.
  std::string job{};
  std::chrono::milliseconds patience{0};  // with another's end
  // With one on another host, if longer: a host that went down holds what a network's file system
  // has not taken back from it yet.
  std::chrono::milliseconds patience_with_another_host{0};
  std::function<void(const std::string& line)> on_waiting{};  // once, where there is a wait
};

class FolderLock {
 public:
  // The folder exists. Where its file system has no locks the log warns, and nothing is held.
  // Throws UsageError naming who holds it; FileError.
  FolderLock(const std::filesystem::path& folder, const FolderLockOptions& options);

  // What the constructor would throw now, the tasks of a job apart; none: nobody holds it, or
  // nobody can tell.
  static std::optional<std::string> refusal(const std::filesystem::path& folder,
                                            const FolderLockOptions& options);

 private:
  FileDescriptor file_;
};

}  // namespace syncopate
