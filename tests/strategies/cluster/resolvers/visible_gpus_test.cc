// Tests the choice of a task's GPUs among those that the task can see.
#include "strategies/cluster/resolvers/visible_gpus.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

Environment seeing(const char* devices) {
  return Environment(Environment::Variables{{"CUDA_VISIBLE_DEVICES", devices}});
}

TEST(VisibleGpus, AreUnknownWithoutTheVariableAndNoneForAnEmptyList) {
  EXPECT_FALSE(visible_gpus(Environment{}));
  EXPECT_EQ(visible_gpus(seeing(""))->size(), 0U);
  EXPECT_EQ(visible_gpus(seeing("NoDevFiles"))->size(), 0U);
  EXPECT_EQ(visible_gpus(seeing("4,GPU-8a,6"))->size(), 3U);
}

TEST(VisibleGpus, AreDividedInEqualParts) {
  EXPECT_EQ(choose_gpus(seeing("0,1,2,3"), 1, 2), std::vector({2, 3}));
  EXPECT_EQ(choose_gpus(seeing("0,1,2"), 1, 2), std::vector({1}));
  EXPECT_EQ(choose_gpus(seeing("0,1"), 3, 4), std::vector({1})) << "in turn";
  EXPECT_EQ(choose_gpus(seeing(""), 0, 1), std::vector<int>{});
}

TEST(VisibleGpus, AreAllUsedWhenTheLauncherBoundTheTaskToThem) {
  EXPECT_EQ(choose_gpus(seeing("0"), 3, 4), std::vector({0}));
  for (const char* per_task : {"2", "a100:2"}) {
    const Environment bound(
        Environment::Variables{{"CUDA_VISIBLE_DEVICES", "0,1"}, {"SLURM_GPUS_PER_TASK", per_task}});
    EXPECT_EQ(choose_gpus(bound, 3, 4), std::vector({0, 1})) << per_task;
  }
}

// When a user starts a job on a single machine, no launcher tells the tasks which GPUs to use.
TEST(Gpus, AreDividedInEqualPartsWithoutALauncher) {
  EXPECT_EQ(deal_out_gpus(4, 1, 2), std::vector({2, 3}));
  EXPECT_EQ(deal_out_gpus(2, 0, 1), std::vector({0, 1}));
  EXPECT_EQ(deal_out_gpus(2, 1, 2), std::vector({1}));
}

TEST(Gpus, AreSharedInTurnWhenThereAreFewerThanTasks) {
  EXPECT_EQ(deal_out_gpus(2, 3, 4), std::vector({1}));
  EXPECT_EQ(deal_out_gpus(1, 3, 4), std::vector({0}));
}

// Each task sees two GPUs of eight, by their PCI addresses: CUDA numbers them from 0 in every task.
const SeenGpus kFirstTwo{"m", {"1b", "1c"}};
const SeenGpus kOtherTwo{"m", {"43", "44"}};

TEST(GpusOfAJob, AreSharedByTasksThatSeeTheSameOnes) {
  const SeenGpus four{"m", {"1b", "1c", "43", "44"}};
  const SeenGpus elsewhere{"n", four.bus_ids};
  const std::vector tasks{elsewhere, four, elsewhere, four};
  EXPECT_EQ(share_of_gpus(tasks, 1).gpus, std::vector({0, 1}));
  EXPECT_EQ(share_of_gpus(tasks, 3).gpus, std::vector({2, 3}));
  EXPECT_EQ(share_of_gpus(tasks, 3).tasks, 2);
}

TEST(GpusOfAJob, AreATasksOwnWhereNoOtherSeesThem) {
  const std::vector tasks{kFirstTwo, kOtherTwo, SeenGpus{"n", kFirstTwo.bus_ids}};
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    EXPECT_EQ(share_of_gpus(tasks, task).gpus, std::vector({0, 1})) << task;
    EXPECT_EQ(share_of_gpus(tasks, task).tasks, 1) << task;
  }
}

TEST(GpusOfAJob, AreTakenInTurnByMoreTasksThanSeeThem) {
  const std::vector tasks{kFirstTwo, kFirstTwo, kOtherTwo, kFirstTwo};
  EXPECT_EQ(share_of_gpus(tasks, 0).gpus, std::vector({0}));
  EXPECT_EQ(share_of_gpus(tasks, 1).gpus, std::vector({1}));
  EXPECT_EQ(share_of_gpus(tasks, 3).gpus, std::vector({0}));
}

TEST(GpusOfAJob, AreNotGivenTwiceToTasksThatNumberThemDifferently) {
  const std::vector tasks{kFirstTwo, SeenGpus{"m", {"1c", "1b"}}};
  EXPECT_EQ(share_of_gpus(tasks, 0).gpus, std::vector({0})) << "1b";
  EXPECT_EQ(share_of_gpus(tasks, 1).gpus, std::vector({0})) << "1c";
}

TEST(GpusOfAJob, AreNotSharedWithTasksWithoutGpusOrWithBoundOnes) {
  const std::vector tasks{SeenGpus{"m", {}}, kFirstTwo};
  EXPECT_EQ(share_of_gpus(tasks, 1).gpus, std::vector({0, 1}));
}

}  // namespace
}  // namespace syncopate
