#include "deploy/launch/mpi_leftovers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

// Folders with the sessions 10, 20 and 30 of this user, of which mpirun 20 still runs.
class MpiLeftovers : public testing::Test {
 protected:
  MpiLeftovers() {
    folders_ = {root_ / "tmp", root_ / "shm", root_ / "proc", "host.a"};
    write("proc/self/maps", "");
    write("proc/20/maps", "");
    write("proc/7/maps", "7f00-7f01 rw-s 00000000 00:17 5 /dev/shm/other\n");
    // 1492975616 is 0x58fd0000, 65536 is 0x00010000 and 131072 is 0x00020000.
    write(session(10) + "/contact.txt", "1492975616.0;tcp://10.0.0.1:4\n10\n");
    write(session(20) + "/contact.txt", "65536.0;tcp://10.0.0.1:4\n20\n");
    write(session(30) + "/contact.txt", "131072.0;tcp://10.0.0.1:4\n30\n");
    for (const char* job : {"58fd0001.0", "58fd0001.1", "10001.0", "00020001.0"}) {
      write(segment(job), "x");
    }
  }

  static std::string session(int pid) {
    return "tmp/ompi.host.a." + std::to_string(geteuid()) + "/pid." + std::to_string(pid);
  }
  static std::string segment(const std::string& job) {
    return "shm/vader_segment.host.a." + std::to_string(geteuid()) + "." + job;
  }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  bool is_there(const std::string& file) const { return fs::exists(root_ / file); }

  const TemporaryFolder root_;
  MpiFolders folders_;
};

TEST_F(MpiLeftovers, OfAnMpirunThatHasEndedAreRemoved) {
  const auto removed = remove_mpi_leftovers(folders_, geteuid());
  EXPECT_EQ(removed, (std::vector<std::string>{root_ / session(10), root_ / session(30)}));
  EXPECT_FALSE(is_there(session(10)));
  EXPECT_FALSE(is_there(segment("58fd0001.0")) || is_there(segment("58fd0001.1")));
  EXPECT_TRUE(is_there(session(20)) && is_there(segment("10001.0"))) << "mpirun 20 runs";
}

TEST_F(MpiLeftovers, StayWhereARankHasNotEnded) {
  write("proc/31/maps", "7f00-7f01 rw-s 00000000 00:17 5 /dev/" + segment("00020001.0") + "\n");
  EXPECT_EQ(remove_mpi_leftovers(folders_, geteuid()).size(), 1U);
  EXPECT_TRUE(is_there(session(30)) && is_there(segment("00020001.0")));
}

TEST_F(MpiLeftovers, OfAnotherUserStay) {
  EXPECT_TRUE(remove_mpi_leftovers(folders_, geteuid() + 1).empty());
  EXPECT_TRUE(is_there(session(10)) && is_there(segment("58fd0001.0")));
}

TEST_F(MpiLeftovers, StayWhereTheSessionIsALink) {
  fs::rename(root_ / session(10), root_ / "elsewhere");
  fs::create_directory_symlink(root_ / "elsewhere", root_ / session(10));
  EXPECT_EQ(remove_mpi_leftovers(folders_, geteuid()).size(), 1U);
  EXPECT_TRUE(is_there("elsewhere/contact.txt") && is_there(segment("58fd0001.0")));
}

// Hosts may share a folder such as TMPDIR.
TEST_F(MpiLeftovers, OfAnotherHostStay) {
  folders_.host = "host.b";
  EXPECT_TRUE(remove_mpi_leftovers(folders_, geteuid()).empty());
  EXPECT_TRUE(is_there(session(10)));
  folders_.host = "host.a.with.a.domain";
  EXPECT_TRUE(remove_mpi_leftovers(folders_, geteuid()).empty());
  folders_.host = "host";
  fs::rename(root_ / "tmp" / ("ompi.host.a." + std::to_string(geteuid())),
             root_ / "tmp" / ("ompi.host." + std::to_string(geteuid())));
  folders_.host = "host.with.a.domain";
  EXPECT_EQ(remove_mpi_leftovers(folders_, geteuid()).size(), 2U) << "Open MPI drops the domain";
}

TEST_F(MpiLeftovers, StayWhereTheMpirunRunsInAContainer) {
  write("proc/4242/status", "Name:\tmpirun\nNSpid:\t4242\t10\n");
  EXPECT_EQ(remove_mpi_leftovers(folders_, geteuid()),
            (std::vector<std::string>{root_ / session(30)}));
  EXPECT_TRUE(is_there(session(10)) && is_there(segment("58fd0001.0")));
}

TEST_F(MpiLeftovers, ThatCannotBeRemovedAreNotReported) {
  // A folder with a file in it stays, as a segment without permission would.
  write(segment("00020001.1") + "/file", "x");
  EXPECT_EQ(remove_mpi_leftovers(folders_, geteuid()),
            (std::vector<std::string>{root_ / session(10)}));
  EXPECT_TRUE(is_there(session(30)));
}

TEST_F(MpiLeftovers, StayWithoutProc) {
  fs::remove_all(folders_.proc);
  EXPECT_TRUE(remove_mpi_leftovers(folders_, geteuid()).empty());
}

}  // namespace
}  // namespace syncopate
