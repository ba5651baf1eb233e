// A temporary folder that exists as long as its object.
#pragma once

#include <filesystem>

namespace syncopate::bench {

class ScratchFolder {
 public:
  // Makes the folder in TMPDIR, or in /tmp. Throws FileError.
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();  // removes the folder with its files

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace syncopate::bench
