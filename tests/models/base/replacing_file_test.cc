#include "models/base/replacing_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

class AReplacingFile : public testing::Test {
 protected:
  AReplacingFile() { std::filesystem::create_directories(folder_); }
  ~AReplacingFile() override { std::filesystem::remove_all(folder_); }

  static void replace(const std::filesystem::path& path) {
    ReplacingFile file(path);
    file.write(std::as_bytes(std::span(std::string_view("new"))));
    file.commit();
  }
  static std::string contents(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string refusal(const std::filesystem::path& path) {
    return message_of<FileError>([&] { replace(path); });
  }

  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) /
                                  ("replacing_file_test_" + std::to_string(::getpid()));
};

TEST_F(AReplacingFile, HasThePermissionsOfTheUmask) {
  const mode_t before = ::umask(0002);
  replace(folder_ / "shared");
  ::umask(before);
  EXPECT_EQ(std::filesystem::status(folder_ / "shared").permissions(),
            std::filesystem::perms{0664});
}

// A rename would put a file in the place of a device.
TEST_F(AReplacingFile, RefusesWhatIsNoFile) {
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(contains(refusal(pipe), "no regular file"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(contains(refusal(folder_), "it is a folder"));
}

TEST_F(AReplacingFile, NamesAFolderThatIsMissing) {
  const std::filesystem::path path = folder_ / "none" / "file";
  EXPECT_TRUE(contains(refusal(path), "there is no folder " + path.parent_path().string()));
}

TEST_F(AReplacingFile, KeepsALinkAndReplacesTheFileBehindIt) {
  std::ofstream(folder_ / "file") << "old";
  std::filesystem::create_symlink("file", folder_ / "link");
  replace(folder_ / "link");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(contents(folder_ / "file"), "new");
}

}  // namespace
}  // namespace syncopate
