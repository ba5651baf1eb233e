#include "models/base/affinity.h"

#include <gtest/gtest.h>

#include <thread>

namespace syncopate {
namespace {

TEST(CpuShare, DividesTheCpusIntoContiguousParts) {
  const std::vector<int> cpus = {0, 1, 4, 5, 6};
  EXPECT_EQ(cpu_share(cpus, 0, 2), (std::vector<int>{0, 1}));
  EXPECT_EQ(cpu_share(cpus, 1, 2), (std::vector<int>{4, 5, 6}));
  EXPECT_EQ(cpu_share(cpus, 0, 1), cpus);
}

TEST(CpuShare, HoldsAllCpusWhenThereAreFewerThanParts) {
  EXPECT_EQ(cpu_share({2, 3}, 1, 3), (std::vector<int>{2, 3}));
}

TEST(BindThisThread, AppliesToTheThreadAndToThreadsItStarts) {
  std::thread([] {
    const std::vector<int> all = usable_cpus();
    bind_this_thread({all.back()});
    EXPECT_EQ(usable_cpus(), std::vector<int>{all.back()});
    std::vector<int> of_child;
    std::thread([&] { of_child = usable_cpus(); }).join();
    EXPECT_EQ(of_child, std::vector<int>{all.back()});
  }).join();
}

}  // namespace
}  // namespace syncopate
