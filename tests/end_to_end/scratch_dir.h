// A folder of a test's own, gone when the test is.
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

// File names as ls shows them, without those that begin with a dot; none when the folder is not there.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace syncopate::test
