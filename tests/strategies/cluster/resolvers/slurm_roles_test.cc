// Tests the roles of the tasks of a Slurm step: by --servers, or by the components of a
// heterogeneous job. The variables are from a recorded job.
#include <gtest/gtest.h>

#include "tests/strategies/cluster/resolvers/slurm_case.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

// Returns role and index of a task, such as "server 0" or "worker 2".
std::string role_of(const ClusterSpec& spec) {
  return std::string(name(spec.role)) + " " + std::to_string(spec.index);
}

TEST(SlurmServers, AreTheFirstTasks) {
  const ClusterFlags flags{.servers = 1};
  const ClusterSpec server = resolve(step("c[3,5,8]", "1(x3)", 3, 0, "c3", 0), flags);
  EXPECT_EQ(role_of(server), "server 0");
  EXPECT_EQ(text_of(server.server_places), "c3:0");
  EXPECT_EQ(text_of(server.worker_places), "c5:0 c8:0");

  const ClusterSpec worker = resolve(
      step("c[3,5,8]", "2(x2),1", 5, 1, "c3", 1) + Variables{{"CUDA_VISIBLE_DEVICES", "0,1"}},
      flags);
  EXPECT_EQ(role_of(worker), "worker 0");
  EXPECT_EQ(worker.world_size, 4);
  EXPECT_EQ(worker.rendezvous.endpoint->host, "c3");
  EXPECT_EQ(text_of(worker.worker_places), "c3:1 c5:0 c5:1 c8:0");
  EXPECT_EQ(worker.gpus, std::vector({1}));
}

TEST(SlurmServers, MustLeaveAWorkerAndAgreeWithTheOtherFlags) {
  const Variables four = step("n1", "4", 4, 1, "n1", 1);
  EXPECT_TRUE(contains(refusal(four, {.servers = 4}), "--servers 4: Slurm's step 7.0 has 4 tasks"));
  EXPECT_TRUE(contains(refusal(four, {.world_size = 2, .servers = 1}),
                       "1 servers and 2 workers make 3 tasks, but Slurm's step 7.0 has 4"));
  EXPECT_EQ(resolve(four, {.world_size = 3, .servers = 1}).world_size, 3);
}

TEST(SlurmServers, MustNotBeNegative) {
  const Variables four = step("n1", "4", 4, 1, "n1", 1);
  EXPECT_TRUE(
      contains(refusal(four, {.servers = -1}), "--servers=-1: expected a whole number from 0"));
  EXPECT_EQ(resolve(four, {.servers = 0}).world_size, 4);
}

TEST(SlurmServers, DoNotReduceTheGpusOfWorkersOnOtherNodes) {
  const Variables one_component = step("n[1-2]", "4,2", 6, 5, "n2", 1);
  EXPECT_EQ(
      resolve(one_component + Variables{{"CUDA_VISIBLE_DEVICES", "0,1"}}, {.servers = 4}).gpus,
      std::vector({1}));
}

// In this job component 0 is on n5 and n6, component 1 on n1 and n2 with two tasks each, component
// 2 on n3 with three tasks. These nine tasks are one step, whose node list is sorted.
struct Recorded {
  int rank;
  const char* node;
  int local_rank;
};
constexpr Recorded kTasks[] = {{0, "n5", 0}, {1, "n6", 0}, {2, "n1", 0}, {3, "n1", 1}, {4, "n2", 0},
                               {5, "n2", 1}, {6, "n3", 0}, {7, "n3", 1}, {8, "n3", 2}};

const Variables kComponents = {{"SLURM_HET_SIZE", "3"},
                               {"SLURM_JOB_NODELIST_HET_GROUP_0", "n[5-6]"},
                               {"SLURM_JOB_NODELIST_HET_GROUP_1", "n[1-2]"},
                               {"SLURM_JOB_NODELIST_HET_GROUP_2", "n3"},
                               {"SLURM_NTASKS_HET_GROUP_0", "20"}};  // of the allocation: not read

Variables whole_step(const Recorded& task) {
  return step("n[1-3,5-6]", "2(x2),3,1(x2)", 9, task.rank, task.node, task.local_rank) +
         kComponents;
}

TEST(HeterogeneousStep, IsPlacedByComponentAlthoughItsNodeListIsSorted) {
  for (const Recorded& task : kTasks) {
    const ClusterSpec spec = resolve(whole_step(task), {.wants_servers = false});
    EXPECT_EQ(spec.index, task.rank);
    EXPECT_EQ(text_of(spec.worker_places), "n5:0 n6:0 n1:0 n1:1 n2:0 n2:1 n3:0 n3:1 n3:2");
    EXPECT_EQ(spec.rendezvous.endpoint->host, "n5") << "not n1, which comes first in the list";
  }
}

TEST(HeterogeneousStep, UsesTheDistributionForTheOwnComponentOnly) {
  // Slurm itself sets the distribution `cyclic` for component 0, which has one task per node.
  const Variables cyclic{{"SLURM_DISTRIBUTION", "cyclic"}};
  const ClusterSpec first = resolve(whole_step(kTasks[0]) + cyclic, {.wants_servers = false});
  EXPECT_EQ(text_of(first.worker_places), "n5:0 n6:0 n1:0 n1:1 n2:0 n2:1 n3:0 n3:1 n3:2");
  EXPECT_EQ(contradiction(first, Role::kWorker, 3, {"n2", 0}), "") << "it may be so";
  EXPECT_NE(contradiction(first, Role::kWorker, 1, {"n5", 1}), "");
  const ClusterSpec second = resolve(whole_step({3, "n2", 0}) + cyclic, {.wants_servers = false});
  EXPECT_EQ(text_of(second.worker_places), "n5:0 n6:0 n1:0 n2:0 n1:1 n2:1 n3:0 n3:1 n3:2");
}

TEST(HeterogeneousStep, PutsRankZeroOnTheFirstComponent) {
  const Variables task = step("cpu7,gpu-[001-002]", "1,2(x2)", 5, 4, "cpu7", 0) +
                         Variables{{"SLURM_HET_SIZE", "2"},
                                   {"SLURM_JOB_NODELIST_HET_GROUP_0", "gpu-[001-002]"},
                                   {"SLURM_JOB_NODELIST_HET_GROUP_1", "cpu7"}};
  const ClusterSpec spec = resolve(task, {.wants_servers = false});
  EXPECT_EQ(text_of(spec.worker_places), "gpu-001:0 gpu-001:1 gpu-002:0 gpu-002:1 cpu7:0");
  EXPECT_EQ(spec.rendezvous.endpoint->host, "gpu-001");
}

TEST(HeterogeneousStep, HasServersInItsFirstComponentAndWorkersInTheOthers) {
  const char* const expected[] = {"server 0", "server 1", "worker 0", "worker 1", "worker 2",
                                  "worker 3", "worker 4", "worker 5", "worker 6"};
  for (const Recorded& task : kTasks) {
    const ClusterSpec spec = resolve(whole_step(task), {.wants_servers = true});
    EXPECT_EQ(role_of(spec), expected[task.rank]);
    EXPECT_EQ(spec.num_servers, 2);
    EXPECT_EQ(spec.world_size, 7);
    EXPECT_EQ(text_of(spec.server_places), "n5:0 n6:0");
  }
}

TEST(HeterogeneousStep, NotesThatItAssumesServersInTheFirstComponent) {
  EXPECT_TRUE(contains(notes_of(resolve(whole_step(kTasks[4]))), "is taken for servers"));
  EXPECT_EQ(notes_of(resolve(whole_step(kTasks[4]), {.wants_servers = true})), "");
}

TEST(HeterogeneousStep, MayHaveFewerComponentsAndTasksThanTheJob) {
  const Variables task = step("n[3,5]", "2,1", 3, 2, "n3", 1) + kComponents;
  const ClusterSpec spec = resolve(task, {.wants_servers = true});
  EXPECT_EQ(role_of(spec), "worker 1");
  EXPECT_EQ(spec.world_size, 2);
  EXPECT_EQ(text_of(spec.server_places), "n5:0");
}

TEST(HeterogeneousStep, DividesGpusAmongTheTasksOfTheOwnComponent) {
  const Variables servers = step("cpu1,gpu1", "4,2", 6, 4, "gpu1", 0) +
                            Variables{{"SLURM_HET_SIZE", "2"},
                                      {"SLURM_JOB_NODELIST_HET_GROUP_0", "cpu1"},
                                      {"SLURM_JOB_NODELIST_HET_GROUP_1", "gpu1"},
                                      {"CUDA_VISIBLE_DEVICES", "0,1"}};
  const Variables second{{"SLURM_PROCID", "5"}, {"SLURM_LOCALID", "1"}};
  for (const std::optional<bool> wants_servers : {std::optional<bool>{}, {true}, {false}}) {
    const ClusterFlags flags{.wants_servers = wants_servers};
    EXPECT_EQ(resolve(servers, flags).gpus, std::vector({0}));
    EXPECT_EQ(resolve(servers + second, flags).gpus, std::vector({1}));
    EXPECT_FALSE(contains(notes_of(resolve(servers, flags)), "CUDA_VISIBLE_DEVICES"));
  }
}

TEST(HeterogeneousStep, IsReadFromTheOldVariableNamesToo) {
  const Variables task =
      step("n[1,5]", "2,1", 3, 1, "n1", 0) + Variables{{"SLURM_PACK_SIZE", "2"},
                                                       {"SLURM_JOB_NODELIST_PACK_GROUP_0", "n5"},
                                                       {"SLURM_JOB_NODELIST_PACK_GROUP_1", "n1"}};
  EXPECT_EQ(role_of(resolve(task, {.wants_servers = true})), "worker 0");
}

const Variables kPair = {{"SLURM_HET_SIZE", "2"},
                         {"SLURM_JOB_NODELIST_HET_GROUP_0", "n5"},
                         {"SLURM_JOB_NODELIST_HET_GROUP_1", "n1"}};
const Variables kFirst = step("n[1,5]", "2,1", 3, 0, "n5", 0) + kPair;
const Variables kSecond = step("n[1,5]", "2,1", 3, 2, "n1", 1) + kPair;

TEST(HeterogeneousStep, HasServersInTheSecondComponentIfBothComponentsAgree) {
  const ClusterSpec worker = resolve(kFirst, {.role = Role::kWorker, .wants_servers = true});
  EXPECT_EQ(role_of(worker), "worker 0");
  EXPECT_EQ(worker.num_servers, 2);
  EXPECT_EQ(worker.rendezvous.endpoint->host, "n1") << "server 0's";
  const ClusterSpec server = resolve(kSecond, {.role = Role::kServer, .wants_servers = true});
  EXPECT_EQ(role_of(server), "server 1");
  EXPECT_EQ(server.rendezvous.endpoint, worker.rendezvous.endpoint);
}

TEST(HeterogeneousStep, ReadsTheRoleFromAVariableOfTheComponent) {
  const Variables worker{{"SYNCOPATE_ROLE", "worker"}};
  EXPECT_EQ(role_of(resolve(kFirst + worker, {.wants_servers = true})), "worker 0");
  EXPECT_EQ(role_of(resolve(kFirst + worker, {.role = Role::kServer})), "server 0")
      << "a flag outranks it";
  EXPECT_TRUE(contains(refusal(kFirst + Variables{{"SYNCOPATE_ROLE", "ps"}}),
                       "SYNCOPATE_ROLE=ps: under srun expected worker or server"));
}

TEST(HeterogeneousStep, RefusesAServerRoleWithoutServers) {
  EXPECT_TRUE(contains(refusal(whole_step(kTasks[8]), {.role = Role::kServer}),
                       "ranks 0 to 1 of Slurm's step 7.0 are the servers, and it is rank 8"));
}

// `srun SERVERS : WORKERS` inside a normal job is one step, and no variable tells servers from
// workers.
TEST(HeterogeneousStep, OfANormalJobRequiresTheNumberOfServersOnBothSides) {
  const Variables server = step("n[1-2]", "1,2", 3, 0, "n1", 0);
  const Variables worker = step("n[1-2]", "1,2", 3, 2, "n2", 1);
  const std::string line = refusal(server, {.role = Role::kServer, .wants_servers = true});
  EXPECT_TRUE(contains(line, "this task is a server, but the other servers are unknown",
                       "is not of a heterogeneous job (#SBATCH hetjob)",
                       "--servers M, on both sides of srun SERVERS : WORKERS"));
  EXPECT_EQ(role_of(resolve(server, {.servers = 1, .role = Role::kServer, .wants_servers = true})),
            "server 0");
  EXPECT_EQ(role_of(resolve(worker, {.servers = 1, .wants_servers = true})), "worker 1");
}

TEST(HeterogeneousStep, HasNoServersUnderAStrategyWithoutServers) {
  const Variables server{{"SYNCOPATE_ROLE", "server"}};
  for (const Variables& task : {kFirst, step("n1", "2", 2, 0, "n1", 0)}) {
    const std::string line = refusal(task + server, {.wants_servers = false});
    EXPECT_TRUE(contains(line, "started as a server, but there are none under this strategy"));
  }
}

TEST(HeterogeneousStep, OfOneComponentHasNoServers) {
  const Variables own_step = step("n[1-2]", "2(x2)", 4, 3, "n2", 1) + kComponents;
  const ClusterSpec spec = resolve(own_step, {.wants_servers = true});
  EXPECT_EQ(role_of(spec), "worker 3");
  EXPECT_EQ(spec.num_servers, 0);
}

}  // namespace
}  // namespace syncopate::test
