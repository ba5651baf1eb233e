// Replaces a file atomically: the new contents are written under a temporary name, synced and
// renamed. A reader sees the old file or the new one, and a full disk leaves the old one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "models/base/file_descriptor.h"

namespace syncopate {

// A ReplacingFile is used by one thread at a time. Every function throws FileError.
class ReplacingFile {
 public:
  // The name of the temporary file is the path, this suffix and the process id.
  static constexpr const char* kTemporarySuffix = ".tmp";

  // A link to a file stays, and the file behind it is replaced; a device or a folder is refused.
  // Throws UsageError, too, if a running job writes the file.
  explicit ReplacingFile(std::filesystem::path path);
  ReplacingFile(const ReplacingFile&) = delete;
  ReplacingFile& operator=(const ReplacingFile&) = delete;
  // Removes the temporary file unless commit() has renamed it.
  ~ReplacingFile();

  // Appends bytes to the temporary file.
  void write(std::span<const std::byte> bytes);
  // Syncs the temporary file and renames it to the path that it replaces.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  FileDescriptor file_;
};

}  // namespace syncopate
