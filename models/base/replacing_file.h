// A file that takes the place of an older one as a whole: written under a temporary name, synced,
// renamed. A reader sees the old file or the new one, and a full disk leaves the old one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "models/base/file_descriptor.h"

namespace syncopate {

// One thread at a time.
class ReplacingFile {
 public:
  // Behind the path; then comes the process number.
  static constexpr const char* kTemporarySuffix = ".tmp";

  // Throws FileError, as all of it does.
  explicit ReplacingFile(std::filesystem::path path);
  ReplacingFile(const ReplacingFile&) = delete;
  ReplacingFile& operator=(const ReplacingFile&) = delete;
  ~ReplacingFile();  // without commit(): nothing is left of it

  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  FileDescriptor file_;
};

}  // namespace syncopate
