// Tests what a process does under limits. A test program of its own, because it limits the address
// space of the whole process.
#include "models/base/process_limits.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

// Leaves this much address space to the process while it exists.
class LimitedAddressSpace {
 public:
  explicit LimitedAddressSpace(rlim_t spare_bytes) {
    getrlimit(RLIMIT_AS, &kept_);
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit tight = {pages * 4096 + spare_bytes, kept_.rlim_max};
    setrlimit(RLIMIT_AS, &tight);
  }
  LimitedAddressSpace(const LimitedAddressSpace&) = delete;
  LimitedAddressSpace& operator=(const LimitedAddressSpace&) = delete;
  ~LimitedAddressSpace() { setrlimit(RLIMIT_AS, &kept_); }

 private:
  rlimit kept_{};
};

// Returns the message of the UsageError; "" without one.
std::string refusal_of_threads(int count, std::size_t spare_bytes) {
  return message_if_thrown<UsageError>([&] { require_threads(count, spare_bytes, "the job"); });
}

TEST(RequireThreads, PassesWhereTheThreadsCanStart) {
  EXPECT_EQ(refusal_of_threads(3, std::size_t{1} << 20), "");
}

TEST(RequireThreads, NamesTheLimitAndWhatToType) {
  const LimitedAddressSpace limited(rlim_t{256} << 20);
  const std::string threads = refusal_of_threads(1000, 4096);
  EXPECT_EQ(threads.find("the job needs 1000 more threads, which the system does not start: the "
                         "limit on address space is "),
            0U)
      << threads;
  EXPECT_TRUE(contains(threads, "ulimit -v unlimited"));
  const std::string space = refusal_of_threads(1, std::size_t{1} << 30);
  EXPECT_EQ(space.find("the job needs 1024 MiB of address space: the limit on address space is "),
            0U)
      << space;
}

TEST(ObtainableMemory, IsWhatTheLimitOnAddressSpaceLeaves) {
  const LimitedAddressSpace limited(rlim_t{256} << 20);
  EXPECT_LE(obtainable_memory(), std::int64_t{256} << 20);
}

TEST(ObtainableMemory, CountsSwapSpace) {
  const TemporaryFolder root;
  std::filesystem::create_directories(root / "proc");
  std::ofstream(root / "proc/meminfo") << "MemAvailable: 1000 kB\nSwapFree: 500 kB\n";
  EXPECT_EQ(obtainable_memory(root), 1500 * 1024);
}

TEST(LimitedAddressSpaceDeathTest, EndsAnAbortWithALineAndTheExitCodeOfAFailure) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto abort_under_a_limit = [] {
    const LimitedAddressSpace limited(rlim_t{256} << 20);
    adapt_to_limited_address_space();
    std::abort();
  };
  EXPECT_EXIT(abort_under_a_limit(), testing::ExitedWithCode(1),
              "most likely for want of address space: raise the limit with ulimit -v unlimited");
}

TEST(LimitedAddressSpaceDeathTest, EndsACrashWithALineAndTheExitCodeOfAFailure) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto crash_under_a_limit = [] {
    const LimitedAddressSpace limited(rlim_t{256} << 20);
    adapt_to_limited_address_space();
    std::raise(SIGSEGV);
  };
  EXPECT_EXIT(crash_under_a_limit(), testing::ExitedWithCode(1),
              "most likely for want of address space: raise the limit with ulimit -v unlimited");
}

TEST(MemoryAdvice, NamesTheLimitOnData) {
  rlimit kept{};
  getrlimit(RLIMIT_DATA, &kept);
  const rlimit tight = {rlim_t{4096} << 20, kept.rlim_max};
  setrlimit(RLIMIT_DATA, &tight);
  const std::string advice = memory_advice();
  const std::string of_threads = thread_advice();
  setrlimit(RLIMIT_DATA, &kept);
  const std::string expected = "the limit on data is 4096 MiB: raise it with ulimit -d unlimited";
  EXPECT_TRUE(contains(advice, expected));
  EXPECT_TRUE(contains(of_threads, expected));
}

TEST(LimitedAddressSpaceDeathTest, LeavesASmallStackOfTheMainThreadAsItIs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto adapt_with_a_small_stack = [] {
    rlimit stack{};
    getrlimit(RLIMIT_STACK, &stack);
    stack.rlim_cur = 256U << 10U;
    setrlimit(RLIMIT_STACK, &stack);
    const LimitedAddressSpace limited(rlim_t{256} << 20);
    adapt_to_limited_address_space();
    std::exit(0);
  };
  EXPECT_EXIT(adapt_with_a_small_stack(), testing::ExitedWithCode(0), "");
}

// The kernel counts the kills of all processes of a cgroup.
TEST(MemoryKills, ExplainNoEndThatComesLongAfterThem) {
  const TemporaryFolder root;
  std::filesystem::create_directories(root / "proc");
  const auto count = [&](int kills) {
    std::ofstream(root / "proc/vmstat") << "oom_kill " << kills << "\n";
  };
  count(3);
  MemoryKills kills(root, std::chrono::nanoseconds(0));
  EXPECT_EQ(kills.reason(), "");
  count(5);
  kills.look();
  EXPECT_EQ(kills.reason().find(", probably by the kernel for want of memory (of the machine)"), 0U)
      << "the kernel counts a kill before the process has ended";
  kills.look();
  EXPECT_EQ(kills.reason(), "");
}

TEST(LimitedAddressSpaceDeathTest, GivesThreadsSmallStacks) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto start_many_threads = [] {
    const LimitedAddressSpace limited(rlim_t{256} << 20);
    adapt_to_limited_address_space();
    std::exit(refusal_of_threads(100, 4096).empty() ? 0 : 1);
  };
  EXPECT_EXIT(start_many_threads(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace syncopate
