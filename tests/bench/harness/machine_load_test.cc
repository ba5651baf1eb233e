// Tests the share of CPU time that other processes take, with made-up texts of /proc/stat.
#include "bench/harness/machine_load.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "models/base/affinity.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

// Returns one line of /proc/stat: times in ticks of 10 ms.
std::string stat_line(const std::string& cpu, double busy, double idle) {
  return fmt::format("{} {:.0f} 0 0 {:.0f} 0 0 0 0 0 0\n", cpu, busy, idle);
}

// Returns /proc/stat of a machine whose CPUs are those of this process, each with these times.
std::string stat_of_usable(double busy, double idle) {
  std::string text = stat_line("cpu ", 1e6, 1e6);
  for (const int cpu : usable_cpus()) text += stat_line(fmt::format("cpu{}", cpu), busy, idle);
  return text;
}

TEST(CpuTimes, CountStolenTimeAsBusyAndWaitingForDisksAsIdle) {
  //                                user nice system idle iowait irq softirq steal
  const CpuTimes times = cpu_times_in("cpu  100 200 300 4000 500 10 20 70 9999 9999\nintr 1 2\n");
  EXPECT_DOUBLE_EQ(times.busy_seconds, 6.7);
  EXPECT_DOUBLE_EQ(times.interrupt_seconds, 0.3);
  EXPECT_DOUBLE_EQ(times.total_seconds, 52.0);
}

TEST(CpuTimes, AreThoseOfTheGivenCpus) {
  const std::string stat = stat_line("cpu ", 600, 60) + stat_line("cpu0", 100, 10) +
                           stat_line("cpu1", 200, 20) + stat_line("cpu10", 300, 30);
  EXPECT_DOUBLE_EQ(cpu_times_in(stat).busy_seconds, 6.0);
  EXPECT_DOUBLE_EQ(cpu_times_in(stat, {1}).busy_seconds, 2.0);
  EXPECT_DOUBLE_EQ(cpu_times_in(stat, {0, 10}).total_seconds, 4.4);
}

TEST(CpuTimes, OfATextWithoutCpusAreAnError) {
  EXPECT_THROW(cpu_times_in(""), FileError);
  EXPECT_THROW(cpu_times_in("cpu  1 2 3\n"), FileError);
  EXPECT_THROW(cpu_times_in(stat_line("cpu0", 1, 1), {5}), FileError);
}

TEST(OthersMeter, CountsWhatNoProcessOfThisFamilyUsed) {
  std::string stat = stat_of_usable(1000, 1000);
  const OthersMeter meter([&] { return stat; });
  stat = stat_of_usable(1000 + 100'000, 1000 + 100'000);
  EXPECT_NEAR(meter.share(), 0.5, 0.01);
  stat = stat_of_usable(1000, 1000 + 100'000);
  EXPECT_EQ(meter.share(), 0.0);
}

void use_cpu(double seconds) {
  const double end = this_process_cpu_seconds() + seconds;
  while (this_process_cpu_seconds() < end) {
  }
}

TEST(OthersMeter, LeavesOutThisProcessItsChildrenAndTheirChildren) {
  const double cpus = static_cast<double>(usable_cpus().size());
  std::string stat = stat_of_usable(0, 0);
  const OthersMeter meter([&] { return stat; });
  const pid_t child = fork();
  if (child == 0) {
    const pid_t grandchild = fork();
    use_cpu(0.2);
    if (grandchild != 0) waitpid(grandchild, nullptr, 0);
    _exit(0);
  }
  use_cpu(0.2);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  // Of 2 s of busy time, this family used 0.6 s.
  stat = stat_of_usable(200.0 / cpus, 200.0 / cpus);
  EXPECT_NEAR(meter.share(), (2.0 - 0.6) / 4.0, 0.03);
}

// A child whose own child computes and runs on, as the worker of a DataLoader does.
TEST(CpuSecondsOfFamilies, IncludeDescendantsThatRunAndThoseThatHaveEnded) {
  std::array<int, 2> computed{};
  std::array<int, 2> may_end{};
  ASSERT_EQ(pipe(computed.data()), 0);
  ASSERT_EQ(pipe(may_end.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(may_end[1]);
    const pid_t first = fork();
    if (first == 0) {
      use_cpu(0.2);
      _exit(0);
    }
    waitpid(first, nullptr, 0);
    if (fork() == 0) use_cpu(0.3);
    char byte = 'x';
    if (write(computed[1], &byte, 1) != 1) _exit(1);
    [[maybe_unused]] const ssize_t end = read(may_end[0], &byte, 1);  // until the test closes it
    _exit(0);
  }
  std::array<char, 2> bytes{};  // the child and its second child each write one
  for (char& byte : bytes) ASSERT_EQ(read(computed[0], &byte, 1), 1);
  EXPECT_NEAR(cpu_seconds_of_families({child}), 0.5, 0.05);
  EXPECT_NEAR(cpu_seconds_of_families({child, child}), 0.5, 0.05);
  for (const int end : may_end) close(end);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_THROW(cpu_seconds_of_families({child}), FileError);
}

}  // namespace
}  // namespace syncopate::bench
