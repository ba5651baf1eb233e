// The files that a pattern of tfrecord:GLOB names.
#include "worker/input/record/shard_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
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

TEST_F(FilePatterns, NameTheFirstShardThatIsMissingAsTheOthersAreNamed) {
  write({"c-0-of-2", "d-00000", "d-00001"});
  EXPECT_TRUE(contains(error("{c-?-of-?,d-00000*}"),
                       "1 of 2 shards are there; the first that is missing is c-1-of-2; "));
  write({"e-00000-of-00002"});
  EXPECT_TRUE(contains(error("*"), "missing is c-1-of-2; "));
  EXPECT_TRUE(contains(error("[de]*"), "missing is e-00001-of-00002; "));
}

TEST_F(FilePatterns, TakeNumbersOfShardsWithoutLeadingZeros) {
  // The last name in byte order, a-99, has more digits than the first that is missing.
  for (int shard = 0; shard < 100; ++shard) write({"a-" + std::to_string(shard) + "-of-100"});
  EXPECT_EQ(found("a-*").size(), 100U);
  fs::remove(folder_.path() / "a-3-of-100");
  EXPECT_TRUE(
      contains(error("a-*"), "99 of 100 shards are there; the first that is missing is a-3-of-1"));
}

// A link to itself cannot be read by any user; a folder without permission can be by root.
TEST_F(FilePatterns, AreErrorsIfAFolderCannotBeRead) {
  fs::create_symlink("loop", folder_.path() / "loop");
  for (const char* const pattern : {"loop/*", "loop/a", "loop/sub/*"}) {
    EXPECT_EQ(error(pattern).find("read " + (folder_.path() / "loop").string()), 0)
        << pattern << ": " << error(pattern);
    EXPECT_TRUE(
        contains(error(pattern), "Too many levels of symbolic links; let this user read it"));
  }
  write({"a"});
  for (const char* const pattern : {"none/*", "a/*"}) {
    EXPECT_TRUE(contains(error(pattern), "no file matches"));
  }
}

TEST_F(FilePatterns, AreErrorsIfAFolderOfAWildcardCannotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read every folder";
  write({"sub/a", "other/a"});
  fs::permissions(folder_.path() / "sub", fs::perms::none);
  EXPECT_TRUE(contains(error("*/?"), "a folder in which files of "));
  fs::permissions(folder_.path() / "sub", fs::perms::owner_all);
}

}  // namespace
}  // namespace syncopate
