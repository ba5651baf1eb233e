// Provides a folder for one test. The destructor removes the folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace syncopate::test {

class ScratchDir {
 public:
  ScratchDir();
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;
  ~ScratchDir();

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// Returns the sorted names of the files in a folder, without names that begin with a dot; empty if
// the folder does not exist.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace syncopate::test
