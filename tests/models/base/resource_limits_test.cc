#include "models/base/resource_limits.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "models/base/affinity.h"
#include "tests/support/temporary_folder.h"

namespace syncopate {
namespace {

// A folder with files like those of the system.
class SystemFiles : public testing::Test {
 protected:
  SystemFiles() {
    write("proc/meminfo", "MemTotal:  64000000 kB\nMemAvailable:   8000 kB\nCached: 1 kB\n");
  }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  const TemporaryFolder root_;
};

TEST_F(SystemFiles, WithoutCgroupsLimitTheMemoryAlone) {
  EXPECT_EQ(cgroup_cpus(root_), std::nullopt);
  EXPECT_EQ(available_memory(root_), 8000 * 1024);
  EXPECT_EQ(available_memory(root_ / "absent"), 0);
}

TEST_F(SystemFiles, OfCgroupsLimitByTheLeastOfAllGroupsOfTheProcess) {
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/job/cpu.max", "250000 100000\n");
  write("sys/fs/cgroup/other/cpu.max", "100000 100000\n");
  write("sys/fs/cgroup/job/memory.max", "5000000\n");
  write("sys/fs/cgroup/job/memory.current", "2000000\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/job/step/memory.current", "1000000\n");
  EXPECT_EQ(cgroup_cpus(root_), 2.5);
  EXPECT_EQ(available_memory(root_), 3000000);
}

TEST_F(SystemFiles, OfAContainerAreFoundUnderThePathOfTheHost) {
  write("proc/self/cgroup", "0::/docker/0123\n");
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_cpus(root_), 0.5);
}

TEST_F(SystemFiles, OfTheFirstCgroupVersionHaveFoldersByController) {
  write("proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/a/b\n1:name=systemd:/a\n");
  write("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpus(root_), std::nullopt);
  write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "400000\n");
  write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpus(root_), 4.0);
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n");
  write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "4000\n");
  EXPECT_EQ(available_memory(root_), 0);
}

TEST_F(SystemFiles, OfOneControllerAreFoundWhereOnlyItsNameIsMounted) {
  write("proc/self/cgroup", "4:cpu,cpuacct:/a\n");
  write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpus(root_), 0.5);
}

TEST_F(SystemFiles, NameTheLimitThatLeavesLeastMemory) {
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/memory.max", "6000000\n");
  write("sys/fs/cgroup/job/step/memory.current", "1000000\n");
  write("sys/fs/cgroup/job/memory.max", "7000000\n");
  write("sys/fs/cgroup/job/memory.current", "5000000\n");
  write("sys/fs/cgroup/job/pids.max", "max\n");
  write("sys/fs/cgroup/job/step/pids.max", "40\n");
  EXPECT_EQ(cgroup_memory(root_)->bytes, 7000000);
  EXPECT_EQ(cgroup_memory(root_)->used_bytes, 5000000);
  write("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 3000000\nactive_file 1500000\n");
  EXPECT_EQ(cgroup_memory(root_)->bytes, 6000000) << "the kernel can drop pages of files";
  EXPECT_EQ(cgroup_threads(root_), 40);
}

TEST_F(SystemFiles, LimitSwapSpaceByTheLeastOfMachineAndCgroups) {
  write("proc/meminfo", "MemTotal: 9000 kB\nSwapTotal: 700 kB\nSwapFree: 500 kB\n");
  EXPECT_EQ(free_swap(root_), 500 * 1024);
  EXPECT_EQ(total_memory(root_), 9700 * 1024);
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/memory.swap.max", "max\n");
  write("sys/fs/cgroup/job/memory.swap.max", "3000\n");
  write("sys/fs/cgroup/job/memory.swap.current", "1000\n");
  write("sys/fs/cgroup/job/memory.max", "100000\n");
  write("sys/fs/cgroup/job/memory.current", "5000\n");
  EXPECT_EQ(free_swap(root_), 2000);
  EXPECT_EQ(total_memory(root_), 103000);
  write("sys/fs/cgroup/job/memory.swap.max", "0\n");
  EXPECT_EQ(free_swap(root_), 0);
  EXPECT_EQ(total_memory(root_ / "absent"), 0);
}

TEST_F(SystemFiles, OfTheFirstCgroupVersionLimitMemoryAndSwapSpaceTogether) {
  write("proc/meminfo", "MemTotal: 9000 kB\nSwapTotal: 700 kB\nSwapFree: 500 kB\n");
  write("proc/self/cgroup", "5:memory:/a\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "100000\n");
  write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "40000\n");
  write("sys/fs/cgroup/memory/a/memory.memsw.limit_in_bytes", "130000\n");
  write("sys/fs/cgroup/memory/a/memory.memsw.usage_in_bytes", "50000\n");
  EXPECT_EQ(free_swap(root_), 20000);
  EXPECT_EQ(total_memory(root_), 130000);
}

TEST_F(SystemFiles, CountTheKillsForWantOfMemory) {
  write("proc/vmstat", "pgfault 5\noom_kill 7\n");
  EXPECT_EQ(count_memory_kills(root_), 7);
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/memory.events", "low 0\noom 3\noom_kill 2\n");
  EXPECT_EQ(count_memory_kills(root_), 2);
  write("proc/self/cgroup", "5:memory:/a\n");
  write("sys/fs/cgroup/memory/a/memory.oom_control", "oom_kill_disable 0\noom_kill 4\n");
  EXPECT_EQ(count_memory_kills(root_), 4);
}

TEST_F(SystemFiles, WithAQuotaLowerTheUsableCpusToItRoundedUp) {
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
  const CpuLimits limits = cpu_limits(root_);
  EXPECT_EQ(limits.affinity, static_cast<int>(usable_cpus().size()));
  EXPECT_EQ(limits.quota, 0.5);
  EXPECT_EQ(limits.usable(), 1);
}

TEST(CpuLimits, AreTheLessOfAffinityAndQuota) {
  EXPECT_EQ((CpuLimits{.affinity = 64, .quota = 1.5}).usable(), 2);
  EXPECT_EQ((CpuLimits{.affinity = 64, .quota = 4.0}).usable(), 4);
  EXPECT_EQ((CpuLimits{.affinity = 2, .quota = 4.0}).usable(), 2);
  EXPECT_EQ((CpuLimits{.affinity = 8, .quota = std::nullopt}).usable(), 8);
  EXPECT_EQ(describe(CpuLimits{.affinity = 64, .quota = 1.5}),
            "2 of 64 CPUs (CPU quota 1.5 of the cgroup)");
  EXPECT_EQ(describe(CpuLimits{.affinity = 1, .quota = 4.0}), "1 CPU");
}

TEST(UsableCpuCount, IsNoMoreThanTheCpusOfTheAffinity) {
  EXPECT_GE(usable_cpu_count(), 1);
  EXPECT_LE(usable_cpu_count(), static_cast<int>(usable_cpus().size()));
}

}  // namespace
}  // namespace syncopate
