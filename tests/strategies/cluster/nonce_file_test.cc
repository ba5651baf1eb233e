#include "strategies/cluster/prepare_rendezvous.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <string>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

class NonceFileTest : public testing::Test {
 protected:
  ClusterSpec task(int index) const {
    return {.source = "Slurm", .index = index, .world_size = 2, .nonce_file = path_.string()};
  }
  std::string refusal(milliseconds timeout) const {
    ClusterSpec other = task(1);
    return message_of<FileError>([&] { (void)share_nonce(other, timeout); });
  }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_ / "nonce";
};

TEST_F(NonceFileTest, GivesAllTasksOneSecretThatOnlyTheirUserCanRead) {
  ClusterSpec other = task(1);
  std::future<void> waiting =
      std::async(std::launch::async, [&] { (void)share_nonce(other, seconds(60)); });
  ClusterSpec first = task(0);
  {
    const auto file = share_nonce(first, seconds(0));
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(first.nonce.size(), 32U);
    struct stat status {};
    ASSERT_EQ(stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    waiting.get();
    EXPECT_EQ(other.nonce, first.nonce);
  }
  EXPECT_TRUE(fs::is_empty(folder_)) << "the file ends with the task that wrote it";
}

TEST_F(NonceFileTest, IsNotUsedByAJobWithANonce) {
  ClusterSpec first = task(0);
  first.nonce = "given";
  EXPECT_EQ(share_nonce(first, seconds(0)), nullptr);
  EXPECT_EQ(first.nonce, "given");
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(NonceFileTest, IsRefusedIfOthersCanReadIt) {
  std::ofstream(path_) << "a nonce of another user";
  fs::permissions(path_, fs::perms(0644));
  EXPECT_TRUE(contains(refusal(seconds(10)), "is not a file that only this user can read"));
}

TEST_F(NonceFileTest, ThatDoesNotAppearIsNamedWithWhatToTry) {
  const std::string line = refusal(milliseconds(60));
  EXPECT_TRUE(contains(
      line, "the first task has not written the job's nonce, " + path_.string() +
                ", within 0.06 s; start the tasks in a folder that all their nodes share, or "
                "export SYNCOPATE_NONCE="));
}

}  // namespace
}  // namespace syncopate
