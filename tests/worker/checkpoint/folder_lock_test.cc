#include "worker/checkpoint/folder_lock.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

class FolderLockTest : public testing::Test {
 protected:
  static FolderLockOptions by(const std::string& job = "") {
    return {.flag = "--checkpoint-dir", .user = "run", .job = job};
  }
  // Returns the error of locking the folder; "" where the lock was free.
  std::string refusal(const std::string& job = "") const {
    return message_if_thrown<UsageError>([&] { const FolderLock lock(folder_, by(job)); });
  }

  const TemporaryFolder folder_;
};

TEST_F(FolderLockTest, RefusesASecondRunAndNamesTheFirst) {
  {
    const FolderLock first(folder_, by());
    const std::string said = refusal();
    EXPECT_TRUE(contains(said, "--checkpoint-dir " + folder_.path().string(),
                         "process " + std::to_string(::getpid()), "choose another folder"));
    EXPECT_FALSE(contains(said, "remove")) << "that host is this one";
    EXPECT_EQ(FolderLock::refusal(folder_, by()), said);
  }
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(FolderLock::refusal(folder_, by()), std::nullopt);
}

TEST_F(FolderLockTest, AdvisesForAHolderWhoseHostIsDown) {
  const FolderLock first(folder_, by());
  std::ofstream(folder_ / ".lock") << "process 7 on host elsewhere, since then\nelsewhere\n\n";
  EXPECT_TRUE(contains(refusal(), "remove " + (folder_ / ".lock").string()));
  std::filesystem::remove(folder_ / ".lock");
  EXPECT_EQ(refusal(), "") << "and that helps";
}

// The host of the locking process may be down while its lock on a network file system is still in
// place.
TEST_F(FolderLockTest, WaitsLongerForARunOnAnotherHost) {
  FolderLockOptions with_timeout = by();
  with_timeout.timeout_for_another_host = std::chrono::seconds(30);
  std::optional<FolderLock> first(std::in_place, folder_, by());
  with_timeout.on_waiting = [&](const std::string& line) {
    EXPECT_TRUE(contains(line, "waiting up to 30 s"));
    first.reset();
  };
  EXPECT_THROW(FolderLock(folder_, with_timeout), UsageError) << "of this host it is known at once";
  std::ofstream(folder_ / ".lock") << "process 7 on host elsewhere, since then\nelsewhere\n\n";
  EXPECT_NO_THROW(FolderLock(folder_, with_timeout));
  EXPECT_FALSE(first);
}

TEST_F(FolderLockTest, HasAFileWithThePermissionsOfTheUmask) {
  using std::filesystem::perms;
  const std::pair<mode_t, perms> cases[] = {
      {0077, perms{0600}}, {0022, perms{0644}}, {0002, perms{0664}}};
  for (const auto& [mask, permissions] : cases) {
    std::filesystem::remove(folder_ / ".lock");
    const mode_t before = ::umask(mask);
    { const FolderLock lock(folder_, by()); }
    ::umask(before);
    EXPECT_EQ(std::filesystem::status(folder_ / ".lock").permissions(), permissions)
        << std::oct << mask;
  }
}

TEST_F(FolderLockTest, IsTakenAgainWhenTheFolderWasRemoved) {
  FolderLock lock(folder_, by());
  lock.renew();  // does nothing
  std::filesystem::remove_all(folder_);
  lock.renew();
  EXPECT_NE(refusal(), "");
  std::filesystem::remove(folder_ / ".lock");
  lock.renew();
  EXPECT_NE(refusal(), "");
}

TEST_F(FolderLockTest, IsLostToARunThatTookTheFolderAfterItWasRemoved) {
  FolderLock lock(folder_, by());
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directory(folder_);
  const FolderLock other(folder_, by());
  EXPECT_THROW(lock.renew(), UsageError);
}

TEST_F(FolderLockTest, EndsWithAKilledProcess) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const FolderLock lock(folder_, by());
    if (::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  ::close(ready[1]);
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  EXPECT_TRUE(contains(refusal(), "process " + std::to_string(child)));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(refusal(), "");
}

TEST_F(FolderLockTest, WaitsForARunThatIsEnding) {
  std::optional<FolderLock> first(std::in_place, folder_, by());
  FolderLockOptions options = by();
  options.timeout = std::chrono::seconds(30);
  std::vector<std::string> lines;
  options.on_waiting = [&](const std::string& line) {
    lines.push_back(line);
    first.reset();
  };
  const FolderLock second(folder_, options);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(contains(lines.front(), "waiting up to 30 s"));
}

TEST_F(FolderLockTest, IsHeldByTheTasksOfOneJobTogether) {
  std::optional<FolderLock> first(std::in_place, folder_, by("job 1"));
  const FolderLock second(folder_, by("job 1"));
  EXPECT_NE(refusal("job 2"), "");
  EXPECT_NE(refusal(), "") << "of no job";
  first.reset();
  EXPECT_NE(refusal("job 2"), "") << "a task of the first job lives";
  const FolderLock back(folder_, by("job 1"));
}

TEST_F(FolderLockTest, IsFreeWhenTheLastTaskHasEnded) {
  { const FolderLock first(folder_, by("job 1")); }
  const FolderLock other(folder_, by("job 2"));
  EXPECT_NE(refusal("job 1"), "");
}

// Locks the folder in a child process in which flock(2) fails as on a file system without locks.
[[noreturn]] void lock_without_locks(const std::filesystem::path& folder) {
  constexpr auto kNumber = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  std::array<sock_filter, 4> filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{filter.size(), filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    ::_exit(1);
  }
  const FolderLock lock(folder, {.flag = "--checkpoint-dir", .user = "run"});
  ::_exit(0);
}

TEST_F(FolderLockTest, WarnsOnAFileSystemWithoutLocks) {
  if (::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0) GTEST_SKIP() << "this kernel filters no calls";
  EXPECT_EXIT(lock_without_locks(folder_), testing::ExitedWithCode(0), "has no locks");
}

}  // namespace
}  // namespace syncopate
