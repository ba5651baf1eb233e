// Locks on files by flock(2). The kernel releases a lock when the process that holds it ends,
// however it ends. Lock files are never removed: a process that removes one could remove a file
// that another process has just locked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "models/base/file_descriptor.h"

namespace syncopate {

enum class LockKind : std::uint8_t { kExclusive, kShared };

struct FileLock {
  enum class Outcome : std::uint8_t { kHeld, kTaken, kUnsupported };
  Outcome outcome = Outcome::kTaken;
  // kHeld: the lock file, open for reading and writing; closing it releases the lock. kUnsupported:
  // the file, without a lock. kTaken: empty, because another holder has the lock.
  FileDescriptor file;
};

// Opens the lock file, creating it if it is missing, and tries once to lock it. Two calls of one
// process exclude each other too. Throws FileError.
// The umask decides which users may take the lock.
FileLock try_lock_file(const std::filesystem::path& path, LockKind kind = LockKind::kExclusive);

// Returns false when the file at `path` was removed or replaced after `file` was opened.
bool is_in_place(const FileDescriptor& file, const std::filesystem::path& path);

// Makes this run the only one that writes an open file, until its descriptors are closed. Other
// tasks of the run may write the file too, after join_claim(). Waits a few seconds for a run that
// is ending. Does nothing for a pipe or a device; on a file system without locks a warning is
// logged. flag: the flag that names the file, "--metrics". path: may be the folder that a lock file
// stands for. Throws UsageError naming the path and its writer.
void claim_file(const FileDescriptor& file, std::string_view flag,
                const std::filesystem::path& path);
// Claims a file and removes its contents. Throws FileError too.
void claim_empty_file(const FileDescriptor& file, std::string_view flag,
                      const std::filesystem::path& path);
// Takes part in the claim of another task of this run, so that it lasts as long as this one writes.
void join_claim(const FileDescriptor& file) noexcept;
// Throws UsageError if a run has claimed the file at `path`. Called before the file is replaced.
// Does nothing for a path without a file, or with one that this user cannot write.
void require_unclaimed(const std::filesystem::path& path);

}  // namespace syncopate
