// Replaces a file atomically: the new contents are written under a temporary name, synced and
// renamed. A reader sees the old file or the new one, and a full disk leaves the old one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "models/base/file_descriptor.h"

namespace syncopate {

// Writes the new contents of one file. Used by one thread at a time. Every function throws
// FileError.
class ReplacingFile {
 public:
  // The name of the temporary file is the path, this suffix and the process id.
  static constexpr const char* kTemporarySuffix = ".tmp";

  // Opens the temporary file. If `path` is a symbolic link, the file that it points to will be
  // replaced. Throws FileError if `path` is a device or a folder. Throws UsageError if a running
  // job writes the file.
  explicit ReplacingFile(std::filesystem::path path);
  ReplacingFile(const ReplacingFile&) = delete;
  ReplacingFile& operator=(const ReplacingFile&) = delete;
  // Removes the temporary file unless commit() has renamed it.
  ~ReplacingFile();

  // Appends bytes to the temporary file.
  void write(std::span<const std::byte> bytes);
  // Syncs the temporary file and renames it to `path`.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  FileDescriptor file_;
};

// Syncs the folder of a file: a rename survives a crash only after that. Throws FileError.
void sync_folder_of(const std::filesystem::path& path);

// Writes a whole file with this text, through a ReplacingFile.
void replace_file(const std::filesystem::path& path, std::string_view text);

}  // namespace syncopate
