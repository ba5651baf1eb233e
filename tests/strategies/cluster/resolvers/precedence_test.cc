// Tests an environment with variables of several launchers: which launcher is chosen, and when
// several are an error.
#include <gtest/gtest.h>

#include "tests/strategies/cluster/resolvers/slurm_case.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

const Variables kSlurm = step("n[1-2]", "2(x2)", 4, 2, "n2", 0);
const Variables kOpenMpiVariables = {{"OMPI_COMM_WORLD_RANK", "3"},
                                     {"OMPI_COMM_WORLD_SIZE", "4"},
                                     {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Variables kTorchrunVariables = {{"RANK", "5"},
                                      {"WORLD_SIZE", "8"},
                                      {"LOCAL_RANK", "1"},
                                      {"MASTER_ADDR", "m"},
                                      {"MASTER_PORT", "29500"}};
const Variables kHydra = {
    {"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "3"}};
const Variables kHorovod = {{"HOROVOD_RANK", "1"},
                            {"HOROVOD_SIZE", "2"},
                            {"HOROVOD_LOCAL_RANK", "1"},
                            {"HOROVOD_LOCAL_SIZE", "2"},
                            {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "10.0.0.1"},
                            {"HOROVOD_GLOO_RENDEZVOUS_PORT", "4000"}};

TEST(Precedence, PrefersMpirunToTheSlurmStepOfItsDaemons) {  // SLURM_PROCID is a daemon's
  const Variables daemons = step("n[1-2]", "1(x2)", 2, 0, "n1", 0);
  const ClusterSpec spec = resolve(kOpenMpiVariables + daemons);
  EXPECT_EQ(spec.source, "Open MPI");
  EXPECT_EQ(spec.index, 3);
  EXPECT_EQ(spec.world_size, 4);
  EXPECT_EQ(spec.local_rank, 1);
  EXPECT_TRUE(contains(notes_of(spec), "Slurm: outranked by Open MPI; it gives rank 0 of 2"));
}

TEST(Precedence, PrefersTorchrunToTheSlurmStepThatStartedIt) {
  const ClusterSpec spec = resolve(kTorchrunVariables + kSlurm);
  EXPECT_EQ(spec.source, "torchrun");
  EXPECT_EQ(spec.index, 5);
  EXPECT_TRUE(contains(notes_of(spec), "Slurm: outranked by torchrun; it gives rank 2 of 4"));
}

TEST(Precedence, SkipsIncompleteTorchrunVariables) {
  const ClusterSpec spec = resolve(kSlurm + Variables{{"WORLD_SIZE", "8"}, {"MASTER_ADDR", "n1"}});
  EXPECT_EQ(spec.source, "Slurm");
  EXPECT_TRUE(contains(notes_of(spec), "torchrun: ignored, it is incomplete"));
}

TEST(Precedence, PrefersHydraToTheSlurmStepOfItsDaemons) {
  const ClusterSpec spec = resolve(kHydra + step("n[1-2]", "1(x2)", 2, 0, "n1", 0));
  EXPECT_EQ(spec.source, "PMI");
  EXPECT_EQ(spec.index, 1);
  EXPECT_EQ(spec.world_size, 3);
  EXPECT_EQ(spec.local_rank, 1);
  EXPECT_FALSE(spec.rendezvous.endpoint) << "PMI tells none";
}

TEST(Precedence, PrefersSlurmToThePmiVariablesOfSrun) {
  const Variables pmi2{{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"PMI_JOBID", "7.0"}};
  const Variables pmix{{"PMIX_RANK", "2"}, {"PMIX_NAMESPACE", "slurm.pmix.7.0"}};
  for (const Variables& set : {pmi2, pmix}) {
    const ClusterSpec spec = resolve(kSlurm + set);
    EXPECT_EQ(spec.source, "Slurm");
    EXPECT_TRUE(contains(notes_of(spec), "PMI: set by srun"));
  }
}

// The daemons of Hydra, started by an srun with PMI, pass the name of their step on to their tasks.
TEST(Precedence, ReadsThePmiRanksOfTasksWhoseDaemonsSrunStarted) {
  const char* const daemons[] = {"0", "0", "1", "1"};
  for (int rank = 0; rank < 4; ++rank) {
    const Variables hydra{{"PMI_RANK", std::to_string(rank)},
                          {"PMI_SIZE", "4"},
                          {"PMI_JOBID", "7.0"},
                          {"SLURM_PROCID", daemons[rank]}};
    const ClusterSpec spec = resolve(step("n[1-2]", "1(x2)", 2, 0, "n1", 0) + hydra);
    EXPECT_EQ(spec.source, "PMI");
    EXPECT_EQ(place_in_job(spec), "rank " + std::to_string(rank) + " of 4");
  }
}

TEST(Precedence, PrefersMpirunRshAndJsrunToTheSlurmStepOfTheirDaemons) {
  for (const auto& [source, prefix] : {std::pair{"MVAPICH", std::string("MV2_COMM_WORLD_")},
                                       std::pair{"JSM", std::string("JSM_NAMESPACE_")}}) {
    const Variables variables{{prefix + "RANK", "3"},
                              {prefix + "SIZE", "4"},
                              {prefix + "LOCAL_RANK", "1"},
                              {prefix + "LOCAL_SIZE", "2"}};
    for (const Variables& others : {Variables{}, step("n[1-2]", "1(x2)", 2, 0, "n1", 0)}) {
      const ClusterSpec spec = resolve(variables + others);
      EXPECT_EQ(spec.source, source);
      EXPECT_EQ(place_in_job(spec), "rank 3 of 4");
      EXPECT_EQ(spec.local_rank, 1);
      EXPECT_EQ(spec.local_size, 2);
    }
  }
}

TEST(Precedence, PrefersSlurmToHorovod) {
  EXPECT_EQ(resolve(kHorovod + kSlurm).source, "Slurm");
  const ClusterSpec spec = resolve(kHorovod);
  EXPECT_EQ(spec.source, "Horovod");
  EXPECT_EQ(spec.index, 1);
  EXPECT_EQ(spec.world_size, 2);
  EXPECT_EQ(spec.local_rank, 1);
  EXPECT_EQ(spec.rendezvous.endpoint, (Endpoint{"10.0.0.1", 4001})) << "its own server has 4000";
  Variables without_port = kHorovod;
  without_port.erase("HOROVOD_GLOO_RENDEZVOUS_PORT");
  EXPECT_FALSE(resolve(without_port).rendezvous.endpoint) << "none is made up";
}

TEST(SingleTask, IsRefusedWhenAnotherSourceDescribesSeveralTasks) {
  // If an MPI library was built without support for this launcher, every process has an MPI world
  // of its own, of size 1.
  const Variables alone{{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}};
  const std::string line = refusal(alone + kSlurm);
  EXPECT_TRUE(contains(line,
                       "by PMI this task is alone, but by Slurm it is rank 2 "
                       "of 4: each task would train by itself"));
  EXPECT_NE(refusal(kOpenMpiVariables + kSlurm +
                    Variables{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}),
            "");
}

TEST(SingleTask, IsRefusedWhenTheOtherTaskIsAServer) {
  const Variables pair =
      step("n[1,5]", "1(x2)", 2, 1, "n1", 0) + Variables{{"SLURM_HET_SIZE", "2"},
                                                         {"SLURM_JOB_NODELIST_HET_GROUP_0", "n5"},
                                                         {"SLURM_JOB_NODELIST_HET_GROUP_1", "n1"}};
  const Variables alone{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}};
  const std::string line = refusal(alone + pair, {.wants_servers = true});
  EXPECT_TRUE(contains(line, "by Open MPI this task is alone, but by Slurm"));
}

TEST(SingleTask, IsRefusedWhenPalsSetsARankAndNoVariableASize) {
  const Variables pals{{"PALS_RANKID", "1"}};
  const std::string line = refusal(pals);
  EXPECT_TRUE(contains(line, "PALS_RANKID=1: a launcher started this task as one of several"));
  EXPECT_EQ(place_in_job(resolve(pals + kHydra)), "rank 1 of 3") << "PMI says how many";
  const Variables jsrun{
      {"PMIX_RANK", "1"}, {"JSM_NAMESPACE_RANK", "1"}, {"JSM_NAMESPACE_SIZE", "2"}};
  EXPECT_EQ(place_in_job(resolve(jsrun)), "rank 1 of 2");
}

TEST(SingleTask, IsRefusedWhenTheVariablesOfItsLauncherAreLost) {
  const std::string line = refusal({}, {.world_size = 4});
  EXPECT_TRUE(contains(line, "no variable of a launcher gives this task's rank", "--cleanenv"));
  EXPECT_EQ(refusal(kSlurm, {.world_size = 4}), "");
}

TEST(SingleTask, IsRefusedWhenPmixSetsARankAndNoVariableASize) {
  const std::string line = refusal({{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "prterun-1"}});
  EXPECT_TRUE(contains(line, "PMIX_RANK=0: a launcher started this task as one of several"));
  EXPECT_EQ(refusal({{"PMIX_RANK", "0"}}, {.rank = 0, .world_size = 1}), "");
  EXPECT_EQ(refusal(kOpenMpiVariables + Variables{{"PMIX_RANK", "3"}}), "") << "mpirun sets both";
}

const Variables kSecondOfTwo =
    step("n[1-2]", "2(x2)", 4, 1, "n1", 1) +
    Variables{{"CUDA_VISIBLE_DEVICES", "0,1"}, {"SLURM_CPUS_PER_TASK", "3"}};

TEST(SourceWithoutLocalRank, TakesItFromAnotherSourceThatAgrees) {
  const Variables tf_config{
      {"TF_CONFIG", R"({"cluster": {"worker": ["n1:5000", "n1:5001", "n2:5000", "n2:5001"]},
                        "task": {"type": "worker", "index": 1}})"}};
  for (const ClusterSpec& spec :
       {resolve(kSecondOfTwo, {.rank = 1, .world_size = 4, .rendezvous = "n1:5000"}),
        resolve(kSecondOfTwo + tf_config)}) {
    EXPECT_NE(spec.source, "Slurm");
    EXPECT_EQ(spec.node, "n1");
    EXPECT_EQ(spec.local_rank, 1);
    EXPECT_EQ(spec.local_size, 2);
    EXPECT_EQ(spec.num_cpus, 3);
    EXPECT_EQ(spec.gpus, std::vector({1}));
    EXPECT_EQ(spec.rendezvous.endpoint, (Endpoint{"n1", 5000}));
    EXPECT_TRUE(
        contains(notes_of(spec), "it agrees: rank 1 of 4, and adds that it is task 1 of 2"));
  }
}

TEST(SourceWithoutLocalRank, IgnoresASourceWithAnotherIndex) {
  const ClusterSpec other =
      resolve(kSecondOfTwo, {.rank = 2, .world_size = 4, .rendezvous = "n1:5000"});
  EXPECT_EQ(other.local_rank, 0);
  EXPECT_EQ(other.node, "");
}

TEST(SourceWithLocalRank, KeepsIt) {
  const Variables variables{
      {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "4"}};
  const ClusterSpec spec = resolve(kSecondOfTwo + variables);
  EXPECT_EQ(spec.source, "PMI");
  EXPECT_EQ(spec.local_rank, 0);
  EXPECT_EQ(spec.local_size, 4);
}

TEST(FlagsWithoutARank, ReplaceTheRendezvous) {
  const ClusterSpec elsewhere = resolve(kSlurm, {.rendezvous = "10.0.0.1:4000", .nonce = "mine"});
  EXPECT_EQ(elsewhere.source, "Slurm");
  EXPECT_EQ(elsewhere.index, 2);
  EXPECT_EQ(elsewhere.rendezvous.endpoint, (Endpoint{"10.0.0.1", 4000}));
  EXPECT_EQ(elsewhere.nonce, "mine");
  EXPECT_FALSE(elsewhere.rendezvous.is_derived);
  const ClusterSpec named = resolve(kSlurm, {.rendezvous = "n1-ib"});
  EXPECT_EQ(named.rendezvous.endpoint,
            (Endpoint{"n1-ib", resolve(kSlurm).rendezvous.endpoint->port}));
  EXPECT_EQ(resolve(kHydra, {.rendezvous = "h:5"}).rendezvous.endpoint, (Endpoint{"h", 5}));
  EXPECT_TRUE(contains(refusal(kHydra, {.rendezvous = "h"}), "it has no port"));
}

TEST(FlagsWithoutARank, MustAgreeWithTheEnvironment) {
  EXPECT_TRUE(
      contains(refusal(kTorchrunVariables, {.world_size = 7}), "--world-size 7: torchrun gives 8"));
  EXPECT_TRUE(
      contains(refusal(kTorchrunVariables, {.servers = 1}), "--servers 1: torchrun gives 0"));
  EXPECT_TRUE(contains(refusal(kTorchrunVariables, {.role = Role::kServer}),
                       "started as a server, but by torchrun it is rank 5 of 8"));
  EXPECT_EQ(refusal(kTorchrunVariables, {.world_size = 8, .role = Role::kWorker}), "");
}

}  // namespace
}  // namespace syncopate::test
