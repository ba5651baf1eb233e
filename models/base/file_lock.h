// Locks on files by flock(2). The kernel releases a lock when the process that holds it exits or is
// killed. Only the holder of a lock may remove its file, because a process could remove a file that
// another process has just locked.
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
  // The open lock file. With kHeld, closing this descriptor releases the lock; the file is open for
  // reading and writing. With kUnsupported, the file is open but not locked, because its file
  // system has no locks. With kTaken, this member is empty, because another descriptor holds the
  // lock.
  FileDescriptor file;
};

// Opens the lock file, creating it if it is missing, and tries once to lock it. Two calls in one
// process exclude each other, too. The umask decides which users may take the lock. Throws
// FileError.
FileLock try_lock_file(const std::filesystem::path& path, LockKind kind = LockKind::kExclusive);

// Returns false when the file at `path` was removed or replaced after `file` was opened.
bool is_in_place(const FileDescriptor& file, const std::filesystem::path& path);

// Claims an open file for this run: no other run may claim it until all descriptors of the claim
// are closed. Other tasks of this run may write the file after join_claim(). If another run holds a
// claim, waits up to 10 s for the claim to end, or 120 s if that run is on another host. Does
// nothing for a pipe or a device; on a file system without locks, only logs a warning. flag: the
// flag that names the file, such as "--metrics". path: the path for messages; for a lock file, this
// may be the folder that the lock protects. Throws UsageError, naming the path and the run that
// holds the claim, if the claim of the other run has not ended after this time. Throws FileError if
// locking fails.
void claim_file(const FileDescriptor& file, std::string_view flag,
                const std::filesystem::path& path);
// Claims a file as claim_file() does and removes its contents. Also throws FileError if the
// contents cannot be removed.
void claim_empty_file(const FileDescriptor& file, std::string_view flag,
                      const std::filesystem::path& path);
// Joins the claim that another task of this run holds. The claim then lasts until this task, too,
// has closed the file.
void join_claim(const FileDescriptor& file) noexcept;
// Throws UsageError if a run has claimed the file at `path`. Called before the file is replaced.
// Does nothing if there is no file at `path`, or if this user cannot write the file.
void require_unclaimed(const std::filesystem::path& path);

}  // namespace syncopate
