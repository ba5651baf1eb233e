// Several launchers in one environment: who wins, who loses, and when that is an error.
#include <gtest/gtest.h>

#include "tests/strategies/cluster/slurm_case.h"

namespace syncopate::test {
namespace {

const Variables kSlurm = step("n[1-2]", "2(x2)", 4, 2, "n2", 0);
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Variables kTorchrun = {{"RANK", "5"},
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

TEST(Precedence, PutsMpirunBeforeTheStepOfItsDaemons) {  // R14: SLURM_PROCID is a daemon's
  const Variables daemons = step("n[1-2]", "1(x2)", 2, 0, "n1", 0);
  const ClusterSpec spec = resolve(kOpenMpi + daemons);
  EXPECT_EQ(spec.source, "Open MPI");
  EXPECT_EQ(spec.index, 3);
  EXPECT_EQ(spec.world_size, 4);
  EXPECT_EQ(spec.local_rank, 1);
  EXPECT_TRUE(contains(notes_of(spec), "Slurm: outranked by Open MPI; it says rank 0 of 2"));
}

TEST(Precedence, PutsTorchrunBeforeTheStepThatStartedIt) {  // R15
  const ClusterSpec spec = resolve(kTorchrun + kSlurm);
  EXPECT_EQ(spec.source, "torchrun");
  EXPECT_EQ(spec.index, 5);
  EXPECT_TRUE(contains(notes_of(spec), "Slurm: outranked by torchrun; it says rank 2 of 4"));
}

TEST(Precedence, PassesOverATorchrunThatIsIncomplete) {  // R16
  const ClusterSpec spec = resolve(kSlurm + Variables{{"WORLD_SIZE", "8"}, {"MASTER_ADDR", "n1"}});
  EXPECT_EQ(spec.source, "Slurm");
  EXPECT_TRUE(contains(notes_of(spec), "torchrun: ignored, it is incomplete"));
}

TEST(Precedence, PutsAnotherMpisLauncherBeforeTheStepOfItsDaemons) {
  const ClusterSpec spec = resolve(kHydra + step("n[1-2]", "1(x2)", 2, 0, "n1", 0));
  EXPECT_EQ(spec.source, "PMI");
  EXPECT_EQ(spec.index, 1);
  EXPECT_EQ(spec.world_size, 3);
  EXPECT_EQ(spec.local_rank, 1);
  EXPECT_FALSE(spec.rendezvous) << "PMI tells none";
}

TEST(Precedence, LeavesToSlurmWhatSrunSetForMpi) {
  const Variables pmi2{{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"PMI_JOBID", "7.0"}};
  const Variables pmix{{"PMIX_RANK", "2"}, {"PMIX_NAMESPACE", "slurm.pmix.7.0"}};
  for (const Variables& set : {pmi2, pmix}) {
    const ClusterSpec spec = resolve(kSlurm + set);
    EXPECT_EQ(spec.source, "Slurm");
    EXPECT_TRUE(contains(notes_of(spec), "PMI: set by srun"));
  }
}

TEST(Precedence, PutsSlurmBeforeHorovod) {
  EXPECT_EQ(resolve(kHorovod + kSlurm).source, "Slurm");
  const ClusterSpec spec = resolve(kHorovod);
  EXPECT_EQ(spec.source, "Horovod");
  EXPECT_EQ(spec.index, 1);
  EXPECT_EQ(spec.world_size, 2);
  EXPECT_EQ(spec.local_rank, 1);
  EXPECT_EQ(spec.rendezvous, (Endpoint{"10.0.0.1", 4001})) << "its own server has 4000";
  Variables without_port = kHorovod;
  without_port.erase("HOROVOD_GLOO_RENDEZVOUS_PORT");
  EXPECT_FALSE(resolve(without_port).rendezvous) << "none is made up";
}

TEST(SilentSingletons, AreRefusedWhereAnotherSourceKnowsBetter) {
  // MPI that was built without this launcher's support: every process is a world of its own.
  const Variables alone{{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}};
  const std::string line = refusal(alone + kSlurm);
  EXPECT_TRUE(contains(line,
                       "PMI says that this task is alone, but Slurm says that it is rank 2 "
                       "of 4: each task would train by itself"))
      << line;
  EXPECT_NE(refusal(kOpenMpi + kSlurm +
                    Variables{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}),
            "");
}

TEST(SilentSingletons, AreRefusedWherePmixSaysARankAndNobodyHowMany) {
  const std::string line = refusal({{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "prterun-1"}});
  EXPECT_TRUE(contains(line, "PMIX_RANK=0: a launcher started this task as one of several"))
      << line;
  EXPECT_EQ(refusal({{"PMIX_RANK", "0"}}, {.rank = 0, .world_size = 1}), "");
  EXPECT_EQ(refusal(kOpenMpi + Variables{{"PMIX_RANK", "3"}}), "") << "mpirun sets both";
}

TEST(FlagsWithoutARank, ChangeWhereTheTasksMeet) {
  const ClusterSpec elsewhere = resolve(kSlurm, {.rendezvous = "10.0.0.1:4000", .nonce = "mine"});
  EXPECT_EQ(elsewhere.source, "Slurm");
  EXPECT_EQ(elsewhere.index, 2);
  EXPECT_EQ(elsewhere.rendezvous, (Endpoint{"10.0.0.1", 4000}));
  EXPECT_EQ(elsewhere.nonce, "mine");
  EXPECT_FALSE(elsewhere.is_derived);
  const ClusterSpec named = resolve(kSlurm, {.rendezvous = "n1-ib"});
  EXPECT_EQ(named.rendezvous, (Endpoint{"n1-ib", resolve(kSlurm).rendezvous->port}));
  EXPECT_EQ(resolve(kHydra, {.rendezvous = "h:5"}).rendezvous, (Endpoint{"h", 5}));
  EXPECT_TRUE(contains(refusal(kHydra, {.rendezvous = "h"}), "it has no port"));
}

TEST(FlagsWithoutARank, AreHeldAgainstWhatTheEnvironmentSays) {
  EXPECT_TRUE(contains(refusal(kTorchrun, {.world_size = 7}), "--world-size 7: torchrun says 8"));
  EXPECT_TRUE(contains(refusal(kTorchrun, {.servers = 1}), "--servers 1: torchrun says 0"));
  EXPECT_TRUE(contains(refusal(kTorchrun, {.role = Role::kServer}),
                       "started as a server, but torchrun says that it is rank 5 of 8"));
  EXPECT_EQ(refusal(kTorchrun, {.world_size = 8, .role = Role::kWorker}), "");
}

}  // namespace
}  // namespace syncopate::test
