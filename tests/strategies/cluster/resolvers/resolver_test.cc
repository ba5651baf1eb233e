// Tests which source of the cluster is chosen, and the ClusterSpec that each resolver returns.
#include <gtest/gtest.h>

#include "tests/strategies/cluster/cluster_case.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "node7"},
                             {"MASTER_PORT", "29500"}};
// The variables of Kubernetes' PyTorchJob, and of scripts.
const Variables kPyTorch = {
    {"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "job-master-0"}, {"MASTER_PORT", "23456"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Variables kLaunch = {{"SYNCOPATE_ROLE", "worker"},
                           {"SYNCOPATE_INDEX", "2"},
                           {"SYNCOPATE_WORKERS", "3"},
                           {"SYNCOPATE_RENDEZVOUS", "127.0.0.1:4000"},
                           {"SYNCOPATE_NONCE", "0f"}};

// The place of a task in its cluster. An empty host means no rendezvous.
struct TaskPlace {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  Endpoint rendezvous{};
};

// The ClusterSpec that the resolver must return.
struct Found {
  std::string name;
  Variables variables;
  ClusterFlags flags;
  std::string source;
  TaskPlace place;
  std::string note;  // a part of one of the notes
};

class Sources : public testing::TestWithParam<Found> {};

TEST_P(Sources, ResolveToATask) {
  const Found& expected = GetParam();
  const ClusterSpec spec = resolve(expected.variables, expected.flags);
  EXPECT_EQ(spec.source, expected.source);
  EXPECT_EQ(spec.role, Role::kWorker);
  EXPECT_EQ(spec.index, expected.place.rank);
  EXPECT_EQ(spec.is_chief(), expected.place.rank == 0);
  EXPECT_EQ(spec.world_size, expected.place.world_size);
  EXPECT_EQ(spec.local_rank, expected.place.local_rank);
  EXPECT_EQ(spec.rendezvous.endpoint.value_or(Endpoint{}), expected.place.rendezvous);
  EXPECT_TRUE(contains(notes_of(spec), expected.note));
}

INSTANTIATE_TEST_SUITE_P(
    Each, Sources,
    testing::Values(
        Found{.name = "EmptyEnvironment", .source = "none"},
        Found{.name = "EmptyVariablesAreUnset",
              .variables = {{"RANK", ""}, {"TF_CONFIG", ""}, {"SYNCOPATE_ROLE", ""}},
              .source = "none"},
        Found{.name = "Flags",
              .flags = {.rank = 1, .world_size = 2, .rendezvous = "h:5"},
              .source = "flags",
              .place = {1, 2, 0, {"h", 5}}},
        Found{.name = "FlagsOfAWorldOfOneNeedNoRendezvous",
              .flags = {.rank = 0, .world_size = 1},
              .source = "flags"},
        Found{.name = "FlagsOutrankAll",
              .variables = kLaunch + kTorchrun,
              .flags = {.rank = 0, .world_size = 2, .rendezvous = "[::1]:5"},
              .source = "flags",
              .place = {0, 2, 0, {"::1", 5}},
              .note = "torchrun: outranked by flags; it gives rank 5 of 8"},
        Found{.name = "FlagsMayDescribeASingleTask",
              .variables = kTorchrun,
              .flags = {.rank = 0, .world_size = 1},
              .source = "flags",
              .note = "torchrun: outranked by flags"},
        Found{.name = "FlagsWinOverWrongVariables",
              .variables = kTorchrun + Variables{{"RANK", "x"}},
              .flags = {.rank = 0, .world_size = 1},
              .source = "flags",
              .note = "torchrun: outranked by flags, and wrong: RANK=x"},
        Found{.name = "Launch",
              .variables = kLaunch,
              .source = "launch",
              .place = {2, 3, 2, {"127.0.0.1", 4000}}},
        Found{.name = "LaunchOutranksTorchrun",
              .variables = kLaunch + kTorchrun,
              .source = "launch",
              .place = {2, 3, 2, {"127.0.0.1", 4000}},
              .note = "torchrun: outranked by launch; it gives rank 5 of 8"},
        Found{.name = "IncompleteLaunchIsIgnored",
              .variables = {{"SYNCOPATE_INDEX", "1"}},
              .source = "none",
              .note = "launch: ignored, it is incomplete: SYNCOPATE_INDEX is set, SYNCOPATE_ROLE, "
                      "SYNCOPATE_WORKERS are not"},
        Found{.name = "OpenMpiUnderLaunchUsesTheRendezvousOfLaunch",
              .variables = kOpenMpi + Variables{{"SYNCOPATE_RENDEZVOUS", "127.0.0.1:7"}},
              .source = "Open MPI",
              .place = {3, 4, 1, {"127.0.0.1", 7}}},
        Found{.name = "IncompleteOpenMpiIsIgnored",
              .variables = {{"OMPI_COMM_WORLD_RANK", "1"}},
              .source = "none",
              .note = "OMPI_COMM_WORLD_SIZE is not"},
        Found{.name = "TorchrunOutranksAnEqualOpenMpi",
              .variables = kTorchrun + kOpenMpi + Variables{{"RANK", "3"}, {"WORLD_SIZE", "4"}},
              .source = "torchrun",
              .place = {3, 4, 1, {"node7", 29501}},
              .note = "Open MPI: outranked by torchrun; it agrees: rank 3 of 4"},
        Found{.name = "TorchrunWithThePortInTheAddress",
              .variables = kTorchrun + Variables{{"MASTER_ADDR", "node7:29500"}},
              .source = "torchrun",
              .place = {5, 8, 1, {"node7", 29501}}},
        Found{.name = "TorchrunWithThePortInTheAddressAlone",
              .variables = kTorchrun + Variables{{"MASTER_ADDR", "node7:4"}, {"MASTER_PORT", ""}},
              .source = "torchrun",
              .place = {5, 8, 1, {"node7", 5}}},
        Found{.name = "TorchrunWithAnIpv6Address",
              .variables = kTorchrun + Variables{{"MASTER_ADDR", "fe80::1"}},
              .source = "torchrun",
              .place = {5, 8, 1, {"fe80::1", 29501}}},
        Found{.name = "TorchrunAlone",
              .variables = kTorchrun +
                           Variables{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}},
              .source = "torchrun"},
        Found{.name = "PyTorchWithoutLocalRanks",
              .variables = kPyTorch,
              .source = "PyTorch",
              .place = {1, 3, 0, {"job-master-0", 23456}},
              .note = "PyTorch: LOCAL_RANK is not set; tasks that see the same GPUs divide them"},
        Found{.name = "PyTorchAtTheLastPort",
              .variables = kPyTorch + Variables{{"MASTER_PORT", "65535"}},
              .source = "PyTorch",
              .place = {1, 3, 0, {"job-master-0", 65535}}},
        Found{.name = "PyTorchWithThePortInTheAddress",
              .variables = kPyTorch + Variables{{"MASTER_ADDR", "m:7"}, {"MASTER_PORT", ""}},
              .source = "PyTorch",
              .place = {1, 3, 0, {"m", 7}}},
        Found{.name = "PyTorchAlone",
              .variables = kPyTorch + Variables{{"RANK", "0"}, {"WORLD_SIZE", "1"}},
              .source = "PyTorch"},
        Found{.name = "PyTorchJobThatCallsItsFirstPodLocalhost",
              .variables = kPyTorch + Variables{{"RANK", "0"},
                                                {"MASTER_ADDR", "localhost"},
                                                {"KUBERNETES_SERVICE_HOST", "10.0.0.1"}},
              .source = "PyTorch",
              .place = {0, 3, 0, {"0.0.0.0", 23456}}},
        Found{.name = "PyTorchOnOneMachine",
              .variables = kPyTorch + Variables{{"RANK", "0"}, {"MASTER_ADDR", "localhost"}},
              .source = "PyTorch",
              .place = {0, 3, 0, {"localhost", 23456}}},
        Found{.name = "OpenMpiOutranksPyTorch",
              .variables = kOpenMpi + kPyTorch,
              .source = "Open MPI",
              .place = {3, 4, 1},
              .note = "PyTorch: outranked by Open MPI; it gives rank 1 of 3"},
        Found{.name = "PyTorchWithoutAPort",
              .variables = kPyTorch + Variables{{"MASTER_PORT", ""}},
              .source = "none",
              .note = "torchrun: ignored, it is incomplete: RANK, WORLD_SIZE, MASTER_ADDR are set, "
                      "MASTER_PORT is not; export MASTER_PORT=29500"},
        Found{.name = "PyTorchWithoutARank",
              .variables = kPyTorch + Variables{{"RANK", ""}},
              .source = "none",
              .note = "WORLD_SIZE, MASTER_ADDR, MASTER_PORT are set, RANK is not; export RANK=0"},
        Found{.name = "PyTorchWithoutAnAddress",
              .variables = kPyTorch + Variables{{"MASTER_ADDR", ""}},
              .source = "none",
              .note = "RANK, WORLD_SIZE, MASTER_PORT are set, MASTER_ADDR is not; export "
                      "MASTER_ADDR=HOST"},
        Found{.name = "TorchrunWithoutAPort",
              .variables = kTorchrun + Variables{{"MASTER_PORT", ""}},
              .source = "none",
              .note = "RANK, WORLD_SIZE, MASTER_ADDR, LOCAL_RANK are set, MASTER_PORT is not; "
                      "export MASTER_PORT=29500"},
        Found{.name = "LightningsNodeRank",
              .variables = {{"NODE_RANK", "1"},
                            {"MASTER_ADDR", "a"},
                            {"MASTER_PORT", "1"},
                            {"WORLD_SIZE", "2"}},
              .source = "none",
              .note = "NODE_RANK=1 is the number of a node, not of a task"},
        Found{.name = "SettingsOfTorchrunWithoutTorchrun",
              .variables = {{"PET_NNODES", "2"}, {"PET_NODE_RANK", "1"}},
              .source = "none",
              .note = "PET_NNODES=2 is a setting for torchrun, which has not started this task"}),
    [](const auto& row) { return row.param.name; });

TEST(Flags, NameServersAndTheJob) {
  ClusterFlags flags{
      .rank = 0, .world_size = 1, .servers = 2, .rendezvous = "h:5", .nonce = "job 7"};
  const ClusterSpec named = resolve({}, flags);
  EXPECT_EQ(named.num_servers, 2);
  EXPECT_EQ(named.rendezvous.endpoint, (Endpoint{"h", 5}));
  EXPECT_EQ(named.nonce, "job 7");
  EXPECT_TRUE(named.restarts);
  flags.nonce = "";
  EXPECT_FALSE(resolve({}, flags).restarts) << "it would not know its job again";
}

// Kubernetes' PyTorchJob sets "auto" in every pod unless its user gives a number.
TEST(PyTorch, TakesAWordAsOneTaskPerNode) {
  for (const char* word : {"auto", "gpu", "cpu", "4x"}) {
    const ClusterSpec spec = resolve(kPyTorch + Variables{{"PET_NPROC_PER_NODE", word},
                                                          {"PET_NNODES", "3"},
                                                          {"PET_NODE_RANK", "1"}});
    EXPECT_EQ(spec.source, "PyTorch") << word;
    EXPECT_EQ(spec.index, 1);
    EXPECT_EQ(spec.world_size, 3);
    EXPECT_EQ(spec.rendezvous.endpoint, (Endpoint{"job-master-0", 23456}));
  }
}

// Other users of a machine can read the arguments of a program, but not its environment.
TEST(Nonce, IsReadFromTheEnvironmentUnlessAFlagGivesIt) {
  const Variables given{{"SYNCOPATE_NONCE", "0f"}};
  ClusterFlags flags{.rank = 0, .world_size = 1, .servers = 2, .rendezvous = "h:5"};
  EXPECT_EQ(resolve(given, flags).nonce, "0f");
  EXPECT_TRUE(resolve(given, flags).restarts);
  flags.nonce = "mine";
  EXPECT_EQ(resolve(given, flags).nonce, "mine");
  EXPECT_EQ(resolve(kTorchrun + given).nonce, "0f.0");
  EXPECT_EQ(resolve(kTorchrun + given + Variables{{"TORCHELASTIC_RESTART_COUNT", "2"}}).nonce,
            "0f.2");
}

struct Wrong {
  std::string name;
  std::string says;
  Variables variables;
  ClusterFlags flags{};
};

class WrongSources : public testing::TestWithParam<Wrong> {};

TEST_P(WrongSources, AreRefusedWithTheNameAndTheValue) {
  const std::string line = refusal(GetParam().variables, GetParam().flags);
  EXPECT_TRUE(contains(line, GetParam().says)) << "'" << line << "'";
  EXPECT_FALSE(contains(line, "\n"));
}

INSTANTIATE_TEST_SUITE_P(
    Each, WrongSources,
    testing::Values(
        Wrong{"RankAlone", "missing --world-size and --rendezvous HOST:PORT;", {}, {.rank = 1}},
        Wrong{"WorldSizeAlone", "missing --rank;", {}, {.world_size = 1}},
        Wrong{"RendezvousAlone", "missing --rank and --world-size;", {}, {.rendezvous = "h:5"}},
        Wrong{"ServersAlone",
              "missing --rank and --world-size and --rendezvous HOST:PORT;",
              {},
              {.servers = 2}},
        Wrong{"ServersOfOneWorkerWithoutRendezvous",
              "missing --rendezvous HOST:PORT;",
              {},
              {.rank = 0, .world_size = 1, .servers = 1}},
        Wrong{"NonceAlone",
              "missing --rank and --world-size and --rendezvous HOST:PORT;",
              {},
              {.nonce = "a"}},
        Wrong{"NoRendezvous", "missing --rendezvous HOST:PORT;", {}, {.rank = 0, .world_size = 2}},
        Wrong{"RankTooLarge",
              "--rank=2: expected a number below --world-size=2",
              {},
              {.rank = 2, .world_size = 2, .rendezvous = "h:5"}},
        Wrong{"NegativeRank",
              "--rank=-1: expected a whole number from 0",
              {},
              {.rank = -1, .world_size = 2, .rendezvous = "h:5"}},
        Wrong{"EmptyWorld",
              "--world-size=0: expected a whole number from 1",
              {},
              {.rank = 0, .world_size = 0, .rendezvous = "h:5"}},
        Wrong{"BadRendezvous", "--rendezvous", {}, {.rank = 0, .world_size = 2, .rendezvous = "h"}},
        Wrong{"TorchrunRankNoNumber", "RANK=1x", kTorchrun + Variables{{"RANK", "1x"}}},
        Wrong{"TorchrunRankTooLarge", "RANK=8: expected a number below WORLD_SIZE=8",
              kTorchrun + Variables{{"RANK", "8"}}},
        Wrong{"TorchrunLocalRankTooLarge",
              "LOCAL_RANK=4: expected a number below LOCAL_WORLD_SIZE=4",
              kTorchrun + Variables{{"LOCAL_RANK", "4"}}},
        Wrong{"TorchrunNegativeSize", "WORLD_SIZE=-8", kTorchrun + Variables{{"WORLD_SIZE", "-8"}}},
        Wrong{"TorchrunHugeSize", "WORLD_SIZE=99999999999",
              kTorchrun + Variables{{"WORLD_SIZE", "99999999999"}}},
        Wrong{"TorchrunLastPort", "MASTER_PORT=65535",
              kTorchrun + Variables{{"MASTER_PORT", "65535"}}},
        Wrong{"TorchrunTwoPorts", "MASTER_ADDR=h:1 and MASTER_PORT=29500 name two ports",
              kTorchrun + Variables{{"MASTER_ADDR", "h:1"}}},
        Wrong{"PyTorchRankTooLarge", "RANK=3: expected a number below WORLD_SIZE=3",
              kPyTorch + Variables{{"RANK", "3"}}},
        Wrong{"PyTorchOfSeveralTasksPerNode",
              "PET_NPROC_PER_NODE=4: expected torchrun to start 4 tasks here",
              kPyTorch + Variables{{"PET_NPROC_PER_NODE", "4"}}},
        Wrong{"LaunchRole", "SYNCOPATE_ROLE=wroker: expected worker, server or evaluator",
              kLaunch + Variables{{"SYNCOPATE_ROLE", "wroker"}}},
        Wrong{"LaunchIndex", "SYNCOPATE_INDEX=3: expected a number below SYNCOPATE_WORKERS=3",
              kLaunch + Variables{{"SYNCOPATE_INDEX", "3"}}},
        Wrong{"LaunchServerIndex", "SYNCOPATE_INDEX=2: expected a number below SYNCOPATE_SERVERS=2",
              kLaunch + Variables{{"SYNCOPATE_ROLE", "server"}, {"SYNCOPATE_SERVERS", "2"}}},
        Wrong{"LaunchRendezvous",
              "SYNCOPATE_RENDEZVOUS is not set: expected HOST:PORT of worker 0, since "
              "SYNCOPATE_WORKERS=3",
              kLaunch + Variables{{"SYNCOPATE_RENDEZVOUS", ""}}},
        Wrong{"LaunchRendezvousWithServers",
              "SYNCOPATE_RENDEZVOUS is not set: expected HOST:PORT of server 0, since "
              "SYNCOPATE_SERVERS=2",
              kLaunch + Variables{{"SYNCOPATE_RENDEZVOUS", ""}, {"SYNCOPATE_SERVERS", "2"}}},
        Wrong{"LaunchRestarts", "SYNCOPATE_RESTARTS=yes",
              kLaunch + Variables{{"SYNCOPATE_RESTARTS", "yes"}}},
        Wrong{"LaunchLate", "SYNCOPATE_LATE=1,3: expected workers below SYNCOPATE_WORKERS=3",
              kLaunch + Variables{{"SYNCOPATE_LATE", "1,3"}}},
        Wrong{"OpenMpiRank",
              "OMPI_COMM_WORLD_RANK=4: expected a number below OMPI_COMM_WORLD_SIZE=4",
              kOpenMpi + Variables{{"OMPI_COMM_WORLD_RANK", "4"}}},
        Wrong{"SilentShrink", "by torchrun this task is alone, but by Open MPI it is rank 3 of 4",
              kOpenMpi + kTorchrun +
                  Variables{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}}),
    [](const auto& row) { return row.param.name; });

TEST(LaunchResolver, PassesTheInheritedSocketToTheChiefOnly) {
  const Variables with_socket = kLaunch + Variables{{"SYNCOPATE_RENDEZVOUS_FD", "7"}};
  EXPECT_EQ(resolve(with_socket).rendezvous.descriptor, -1);
  const ClusterSpec chief = resolve(with_socket + Variables{{"SYNCOPATE_INDEX", "0"}});
  EXPECT_EQ(chief.rendezvous.descriptor, 7);
  EXPECT_EQ(chief.nonce, "0f");
  EXPECT_TRUE(contains(
      refusal(with_socket + Variables{{"SYNCOPATE_INDEX", "0"}, {"SYNCOPATE_RENDEZVOUS_FD", "1"}}),
      "SYNCOPATE_RENDEZVOUS_FD=1"));
}

TEST(LaunchResolver, PassesTheInheritedSocketToServerZeroIfThereAreServers) {
  const Variables first = kLaunch + Variables{{"SYNCOPATE_RENDEZVOUS_FD", "7"},
                                              {"SYNCOPATE_INDEX", "0"},
                                              {"SYNCOPATE_SERVERS", "2"}};
  const auto descriptor = [&](const char* role, const char* index) {
    return resolve(first + Variables{{"SYNCOPATE_ROLE", role}, {"SYNCOPATE_INDEX", index}})
        .rendezvous.descriptor;
  };
  EXPECT_EQ(descriptor("worker", "0"), -1);
  EXPECT_EQ(descriptor("server", "0"), 7);
  EXPECT_EQ(descriptor("server", "1"), -1);
}

TEST(LaunchResolver, ReadsWhereATaskReportsThatTheTasksHaveMet) {
  EXPECT_EQ(resolve(kLaunch).rendezvous.met_descriptor, -1);
  EXPECT_EQ(resolve(kLaunch + Variables{{"SYNCOPATE_MET_FD", "9"}}).rendezvous.met_descriptor, 9);
}

TEST(LaunchResolver, ReadsWhetherATaskMayBeRestarted) {
  EXPECT_FALSE(resolve(kLaunch).restarts);
  EXPECT_FALSE(resolve(kLaunch + Variables{{"SYNCOPATE_RESTARTS", "0"}}).restarts);
  EXPECT_TRUE(resolve(kLaunch + Variables{{"SYNCOPATE_RESTARTS", "1"}}).restarts);
}

TEST(LaunchResolver, ReadsWhichWorkersStartLater) {
  EXPECT_TRUE(resolve(kLaunch).late_workers.empty());
  EXPECT_EQ(resolve(kLaunch + Variables{{"SYNCOPATE_LATE", "0,2"}}).late_workers,
            (std::vector<int>{0, 2}));
}

TEST(LaunchResolver, ReadsServersAndTheNumberOfTasksOnTheMachine) {
  const ClusterSpec spec = resolve(kLaunch + Variables{{"SYNCOPATE_ROLE", "server"},
                                                       {"SYNCOPATE_INDEX", "0"},
                                                       {"SYNCOPATE_SERVERS", "2"},
                                                       {"SYNCOPATE_LOCAL_SIZE", "5"}});
  EXPECT_EQ(spec.role, Role::kServer);
  EXPECT_FALSE(spec.is_chief());
  EXPECT_EQ(spec.num_servers, 2);
  EXPECT_EQ(spec.local_size, 5);
}

TEST(TorchrunResolver, GivesARestartedGroupAnotherNonce) {
  const Variables run = kTorchrun + Variables{{"TORCHELASTIC_RUN_ID", "job"}};
  EXPECT_EQ(resolve(kTorchrun).nonce, "");
  EXPECT_NE(resolve(run).nonce, "");
  EXPECT_NE(resolve(run + Variables{{"TORCHELASTIC_RESTART_COUNT", "1"}}).nonce,
            resolve(run + Variables{{"TORCHELASTIC_RESTART_COUNT", "2"}}).nonce);
}

TEST(TorchrunResolver, TellsWhetherItsNonceIsASecret) {
  const auto is_guessable = [](const Variables& more) {
    return resolve(kTorchrun + more).is_nonce_guessable;
  };
  EXPECT_TRUE(is_guessable({}));
  EXPECT_TRUE(is_guessable({{"TORCHELASTIC_RUN_ID", "none"}}));
  EXPECT_TRUE(is_guessable({{"TORCHELASTIC_RUN_ID", "job-7"}, {"SYNCOPATE_NONCE", ""}}));
  EXPECT_FALSE(is_guessable({{"TORCHELASTIC_RUN_ID", "b2c7a0f2-6e1c-4f3e-9a51-3c8f0a1d2e4b"}}));
  EXPECT_FALSE(is_guessable({{"TORCHELASTIC_RUN_ID", "job-7"}, {"SYNCOPATE_NONCE", "0f"}}));
}

// Without --rdzv-id torchrun's run id is "none" in every job.
TEST(TorchrunResolver, GivesUnnamedRunsOfSlurmJobsDifferentNonces) {
  const auto nonce = [](const char* job, const char* step, const Variables& more = {}) {
    return resolve(kTorchrun +
                   Variables{{"TORCHELASTIC_RUN_ID", "none"},
                             {"SLURM_JOB_ID", job},
                             {"SLURM_STEP_ID", step},
                             {"SLURM_PROCID", "0"}} +
                   more)
        .nonce;
  };
  EXPECT_NE(nonce("7", "0"), nonce("8", "0"));
  EXPECT_NE(nonce("7", "0"), nonce("7", "0", {{"SLURM_RESTART_COUNT", "1"}}));
  EXPECT_NE(nonce("7", "0"), nonce("7", "0", {{"TORCHELASTIC_RESTART_COUNT", "1"}}));
  EXPECT_EQ(nonce("7", "0"), nonce("7", "1")) << "one srun per node";
  EXPECT_EQ(nonce("7", "4294967291"), nonce("", "")) << "a batch script's may have gone by ssh";
}

}  // namespace
}  // namespace syncopate::test
