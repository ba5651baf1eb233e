// Tests the values that a task reads from the variables of a Slurm step: its rank, the nodes of all
// tasks, its GPUs. The environments are from recorded steps.
#include <gtest/gtest.h>

#include "strategies/cluster/resolvers/visible_gpus.h"
#include "tests/strategies/cluster/resolvers/slurm_case.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

TEST(Slurm, ProvidesTheRankAndThePlacesOfAllTasks) {
  const ClusterSpec spec =
      resolve(step("c[3,5,8]", "1(x3)", 3, 2, "c8", 0) + Variables{{"CUDA_VISIBLE_DEVICES", "0"}});
  EXPECT_EQ(spec.source, "Slurm");
  EXPECT_EQ(spec.role, Role::kWorker);
  EXPECT_EQ(spec.index, 2);
  EXPECT_EQ(spec.world_size, 3);
  EXPECT_EQ(text_of(spec.worker_places), "c3:0 c5:0 c8:0");
  EXPECT_EQ(spec.rendezvous.endpoint->host, "c3");
  EXPECT_EQ(spec.node, "c8");
  EXPECT_EQ(spec.gpus, std::vector({0}));
}

TEST(Slurm, KeepsTheOrderOfTheNodeList) {
  EXPECT_EQ(text_of(resolve(step("n[2,10]", "1(x2)", 2, 0, "n2", 0)).worker_places), "n2:0 n10:0");
  const ClusterSpec spec = resolve(step("node[1-3,7]", "2(x3),1", 7, 5, "node3", 1));
  EXPECT_EQ(spec.worker_places.at(5), (Place{"node3", 1}));
  EXPECT_EQ(spec.worker_places.at(6), (Place{"node7", 0}));
  EXPECT_EQ(spec.local_size, 2);
}

TEST(Slurm, PlacesTasksByTheDistribution) {
  const auto places = [](const char* distribution, int rank, const char* node, int local) {
    const Variables all = step("n[1-2]", "3,1", 4, rank, node, local);
    return text_of(resolve(all + Variables{{"SLURM_DISTRIBUTION", distribution},
                                           {"SLURM_DIST_PLANESIZE", "2"}})
                       .worker_places);
  };
  EXPECT_EQ(places("cyclic", 3, "n1", 2), "n1:0 n2:0 n1:1 n1:2");
  EXPECT_EQ(places("block:cyclic", 3, "n2", 0), "n1:0 n1:1 n1:2 n2:0");
  EXPECT_EQ(places("plane", 2, "n2", 0), "n1:0 n1:1 n2:0 n1:2");
}

TEST(Slurm, ReadsAnArbitraryDistributionFromItsNodeList) {
  const Variables arbitrary =
      step("n[1-2]", "2,1", 3, 0, "n2", 0) + Variables{{"SLURM_DISTRIBUTION", "arbitrary"}};
  const ClusterSpec listed =
      resolve(arbitrary + Variables{{"SLURM_ARBITRARY_NODELIST", "n2,n1,n1"}});
  EXPECT_EQ(text_of(listed.worker_places), "n2:0 n1:0 n1:1");
  EXPECT_EQ(listed.rendezvous.endpoint->host, "n2");
  const ClusterSpec unlisted = resolve(arbitrary);
  EXPECT_FALSE(unlisted.rendezvous.endpoint);
  EXPECT_TRUE(contains(notes_of(unlisted), "give --rendezvous HOST"));
  EXPECT_EQ(resolve(arbitrary, {.rendezvous = "n2"}).rendezvous.endpoint->host, "n2");
}

TEST(Slurm, ReadsTheVariablesOfTheStepAndNotOfTheJob) {
  const ClusterSpec spec =
      resolve(step("n[3-4]", "1(x2)", 2, 1, "n4", 0) +
              Variables{{"SLURM_JOB_NODELIST", "n[1-4]"}, {"SLURM_NTASKS", "4"}});
  EXPECT_EQ(text_of(spec.worker_places), "n3:0 n4:0");
  EXPECT_EQ(spec.world_size, 2);
}

TEST(Slurm, DividesTheVisibleGpusAmongTheTasksOfANode) {
  const auto gpus = [](const char* counts, int tasks, int local, const char* visible) {
    return resolve(step("n1", counts, tasks, local, "n1", local) +
                   Variables{{"CUDA_VISIBLE_DEVICES", visible}})
        .gpus;
  };
  EXPECT_EQ(gpus("4", 4, 3, "0"), std::vector({0})) << "R8: the launcher bound it";
  EXPECT_EQ(gpus("2", 2, 1, "4,5"), std::vector({1})) << "R9: the second of those it sees";
  EXPECT_EQ(gpus("2", 2, 1, ""), std::vector<int>{}) << "R10";
  EXPECT_EQ(gpus("2", 2, 1, "NoDevFiles"), std::vector<int>{});
  EXPECT_EQ(resolve(step("n1", "1", 1, 0, "n1", 0)).gpus, std::vector<int>{}) << "R10";
}

TEST(Slurm, GivesATaskOnANodeWithFewerTasksNoMoreGpus) {  // node c8 has one task
  const Variables last = step("c[3,5,8]", "2(x2),1", 5, 4, "c8", 0);
  EXPECT_EQ(resolve(last + Variables{{"CUDA_VISIBLE_DEVICES", "0,1,2,3"}}).gpus,
            std::vector({0, 1}));
  const ClusterSpec few =
      resolve(last + Variables{{"SLURM_GPUS_PER_TASK", "2"}, {"CUDA_VISIBLE_DEVICES", "0,1"}});
  EXPECT_EQ(few.gpus, std::vector({0, 1})) << "bound";
}

TEST(Slurm, NotesThatThereAreFewerGpusThanTasks) {
  const ClusterSpec spec =
      resolve(step("n1", "4", 4, 3, "n1", 3) + Variables{{"CUDA_VISIBLE_DEVICES", "0,1"}});
  EXPECT_EQ(spec.gpus, std::vector({1}));
  EXPECT_TRUE(
      contains(notes_of(spec), "shows 2 GPUs to each of 4 tasks of a node", "cuda:1 by this one"));
}

// Returns the variables that srun --gpu-bind=per_task:2 or --tres-per-task=gres/gpu:2 sets.
TEST(Slurm, LeavesABoundTaskAllItsVisibleGpus) {
  const Variables bound{{"CUDA_VISIBLE_DEVICES", "0,1"}, {"SLURM_GPUS_ON_NODE", "8"}};
  const ClusterSpec spec = resolve(step("n1", "4", 4, 3, "n1", 3) + bound);
  EXPECT_EQ(spec.gpus, std::vector({0, 1}));
  EXPECT_FALSE(contains(notes_of(spec), "GPUs to each"));
  const Variables shared{{"CUDA_VISIBLE_DEVICES", "0,1"}, {"SLURM_GPUS_ON_NODE", "2"}};
  EXPECT_EQ(resolve(step("n1", "2", 2, 1, "n1", 1) + shared).gpus, std::vector({1}));
}

TEST(Slurm, DerivesThePortFromTheStepAndLeavesTheNonceToChance) {
  const Variables first = step("n[1-2]", "1(x2)", 2, 0, "n1", 0);
  const ClusterSpec spec = resolve(first);
  EXPECT_GE(spec.rendezvous.endpoint->port, 20000);
  EXPECT_LT(spec.rendezvous.endpoint->port, 30000);
  EXPECT_EQ(resolve(first + Variables{{"SLURM_PROCID", "1"}}).rendezvous.endpoint,
            spec.rendezvous.endpoint);
  const ClusterSpec next = resolve(first + Variables{{"SLURM_STEP_ID", "1"}});
  EXPECT_NE(next.rendezvous.endpoint->port, spec.rendezvous.endpoint->port);
  EXPECT_EQ(spec.nonce, "") << "what squeue shows to other users is no nonce";
  EXPECT_EQ(spec.nonce_file, ".syncopate-slurm-7.0.0");
  EXPECT_EQ(next.nonce_file, ".syncopate-slurm-7.1.0");
  EXPECT_EQ(resolve(first + Variables{{"SLURM_STEP_RESV_PORTS", "17805-17806"}})
                .rendezvous.endpoint->port,
            17805);
  EXPECT_EQ(resolve(first + Variables{{"SLURM_RESTART_COUNT", "1"}}).nonce_file,
            ".syncopate-slurm-7.0.1");
  EXPECT_EQ(resolve(first + Variables{{"SYNCOPATE_NONCE", "0f"}}).nonce, "0f");
}

TEST(Slurm, IsCertainOfTheFallbackHostOnlyIfSrunRanOnItsNode) {
  const Variables two =
      step("n[1-2]", "1(x2)", 2, 1, "n2", 0) +
      Variables{{"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"}, {"SLURM_JOB_NODELIST", "n[1-4]"}};
  EXPECT_EQ(resolve(two).rendezvous.fallback_host, "10.0.0.9");
  EXPECT_FALSE(resolve(two).rendezvous.is_fallback_certain) << "srun may run on a login node";
  const Variables batch{{"ENVIRONMENT", "BATCH"}};
  EXPECT_TRUE(resolve(two + batch).rendezvous.is_fallback_certain);
  EXPECT_FALSE(resolve(two + batch + Variables{{"SLURM_STEP_NODELIST", "n[3-4]"}})
                   .rendezvous.is_fallback_certain)
      << "the script runs on n1, rank 0 on n3";
}

TEST(Slurm, ProvidesTheNumberOfCpusOfATask) {
  const Variables one = step("n1", "1", 1, 0, "n1", 0);
  EXPECT_EQ(resolve(one + Variables{{"SLURM_CPUS_PER_TASK", "4"}}).num_cpus, 4);
  EXPECT_EQ(resolve(one).num_cpus, 0);
}

TEST(Slurm, IsIgnoredInsideAJobButOutsideOfAStep) {  // a batch script has a rank too
  const ClusterSpec spec =
      resolve({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}});
  EXPECT_EQ(spec.source, "none");
  EXPECT_TRUE(contains(notes_of(spec), "inside a job but not in a step"));
}

TEST(Slurm, NotesARankWithoutTheVariablesOfItsStep) {
  for (const Variables& job : {Variables{}, Variables{{"SLURM_JOB_ID", "7"}}}) {
    const ClusterSpec spec = resolve(job + Variables{{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}});
    EXPECT_EQ(spec.source, "none");
    EXPECT_TRUE(
        contains(notes_of(spec), "SLURM_PROCID=2 is set", "not running inside a Slurm step?"));
  }
}

TEST(Slurm, IgnoresTheStepOfAnInteractiveShell) {
  const ClusterSpec shell =
      resolve(step("n1", "1", 1, 0, "n1", 0) + Variables{{"SLURM_STEP_ID", "4294967290"}});
  EXPECT_EQ(shell.source, "none");
  EXPECT_TRUE(contains(notes_of(shell), "start it with srun"));
}

struct WrongStep {
  std::string name;
  Variables changed;
  std::string says;
};

class WrongSteps : public testing::TestWithParam<WrongStep> {};

TEST_P(WrongSteps, AreRefusedWithTheNameAndTheValue) {
  const std::string line = refusal(step("c[3,5,8]", "2(x2),1", 5, 1, "c3", 1) + GetParam().changed);
  EXPECT_TRUE(contains(line, GetParam().says)) << "'" << line << "'";
}

INSTANTIATE_TEST_SUITE_P(
    Each, WrongSteps,
    testing::Values(
        WrongStep{"List", {{"SLURM_STEP_NODELIST", "c[3-"}}, "SLURM_STEP_NODELIST='c[3-', column"},
        WrongStep{"FewerNodes",
                  {{"SLURM_STEP_NODELIST", "c[3,5]"}},
                  "counts tasks of 3 nodes, SLURM_STEP_NODELIST=c[3,5] names 2"},
        WrongStep{
            "FewerTasks", {{"SLURM_STEP_NUM_TASKS", "4"}}, "makes 5 tasks, SLURM_STEP_NUM_TASKS=4"},
        WrongStep{"Rank", {{"SLURM_PROCID", "5"}}, "SLURM_PROCID=5: expected a number below"},
        WrongStep{"NoCounts",
                  {{"SLURM_STEP_TASKS_PER_NODE", ""}},
                  "SLURM_STEP_TASKS_PER_NODE is not set in this step"},
        WrongStep{"NoTasks",
                  {{"SLURM_STEP_NUM_TASKS", ""}},
                  "SLURM_STEP_NUM_TASKS is not set in this step"},
        WrongStep{"Ports", {{"SLURM_STEP_RESV_PORTS", "x-y"}}, "SLURM_STEP_RESV_PORTS=x"}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace syncopate::test
