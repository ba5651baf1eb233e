// The files that a pattern of tfrecord:GLOB names.
#include "worker/input/record/file_pattern.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "models/base/errors.h"
#include "tests/worker/input/packed_files.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

class FilePatterns : public testing::Test {
 protected:
  void write(const std::vector<std::string>& names) const {
    for (const std::string& name : names) {
      fs::create_directories((folder_.path() / name).parent_path());
      write_file(folder_.path() / name, Bytes());
    }
  }
  // Returns the names inside the test's folder.
  std::vector<std::string> found(const std::string& pattern) const {
    std::vector<std::string> names;
    for (const fs::path& path : files_of_pattern((folder_.path() / pattern).string())) {
      names.push_back(path.lexically_relative(folder_.path()).string());
    }
    return names;
  }
  std::string error(const std::string& pattern) const {
    return message_of<Error>([&] { found(pattern); });
  }

  TemporaryFolder folder_;
};

TEST_F(FilePatterns, NameEachFileOnceInTheOrderOfTheNames) {
  write({"b-1", "a-1", "a-10", "sub/a"});
  EXPECT_EQ(found("{a-1*,a-*,b-1}"), (std::vector<std::string>{"a-1", "a-10", "b-1"}));
}

// A link to itself cannot be read by any user; a folder without permission can be by root.
TEST_F(FilePatterns, AreErrorsIfAFolderCannotBeRead) {
  fs::create_symlink("loop", folder_.path() / "loop");
  for (const char* const pattern : {"loop/*", "loop/a", "loop/sub/*"}) {
    EXPECT_EQ(error(pattern).find("read " + (folder_.path() / "loop").string()), 0)
        << pattern << ": " << error(pattern);
    EXPECT_NE(error(pattern).find("Too many levels of symbolic links; let this user read it"),
              std::string::npos);
  }
  EXPECT_NE(error("none/*").find("no file matches"), std::string::npos) << error("none/*");
}

TEST_F(FilePatterns, AreErrorsIfAFolderOfAWildcardCannotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read every folder";
  write({"sub/a", "other/a"});
  fs::permissions(folder_.path() / "sub", fs::perms::none);
  EXPECT_NE(error("*/?").find("a folder in which files of "), std::string::npos) << error("*/?");
  fs::permissions(folder_.path() / "sub", fs::perms::owner_all);
}

}  // namespace
}  // namespace syncopate
