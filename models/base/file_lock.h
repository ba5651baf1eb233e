// Locks on files, by flock(2): gone with the process that holds one, however it ends. A file that
// is locked stays in its place: whoever removed it could remove one that somebody has just locked.
#pragma once

#include <cstdint>
#include <filesystem>

#include "models/base/file_descriptor.h"

namespace syncopate {

enum class LockKind : std::uint8_t { kExclusive, kShared };

struct FileLock {
  enum class Outcome : std::uint8_t { kHeld, kTaken, kUnsupported };
  Outcome outcome = Outcome::kTaken;
  // Of the file, to read and to write; the lock is held until it is closed. None where another has
  // it; without a lock where the file system has no locks.
  FileDescriptor file;
};

// Opens the file, or makes it, and tries once. Two calls of one process exclude each other, too.
// Throws FileError.
FileLock try_lock_file(const std::filesystem::path& path, LockKind kind = LockKind::kExclusive);

}  // namespace syncopate
