// Tests how commands use a cluster that environment variables describe: strategies that fit the
// cluster, strategies that do not, and tasks that are started as servers.
#include "deploy/cli/command_line.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

using Variables = Environment::Variables;

Variables operator+(Variables left, const Variables& right) {
  for (const auto& [name, value] : right) left[name] = value;
  return left;
}

CommandOptions parse(std::vector<std::string> arguments, const Variables& variables) {
  return parse_command_line(arguments, Environment(variables));
}

std::string error_of(const std::vector<std::string>& arguments, const Variables& variables) {
  return message_if_thrown<Error>([&] { parse(arguments, variables); });
}

const Variables kBatchScript = {
    {"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}};
// Returns the variables of task 2 of 3, where component 0 has host n5 and component 1 has host n1
// with two tasks.
const Variables kStep = {{"SLURM_JOB_ID", "7"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_PROCID", "2"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURMD_NODENAME", "n1"},
                         {"SLURM_STEP_NUM_TASKS", "3"},
                         {"SLURM_STEP_NODELIST", "n[1,5]"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2,1"}};
const Variables kComponents = {{"SLURM_HET_SIZE", "2"},
                               {"SLURM_JOB_NODELIST_HET_GROUP_0", "n5"},
                               {"SLURM_JOB_NODELIST_HET_GROUP_1", "n1"}};

TEST(InsideAJobButNotInAStep, StrategiesOfSeveralTasksAreRefused) {
  for (const char* strategy : {"multi-worker-mirrored", "pipeline", "parameter-server"}) {
    const std::string line = error_of({"train", "--strategy", strategy}, kBatchScript);
    EXPECT_TRUE(contains(line, "inside a job but not in a step", "start it with srun"));
  }
}

TEST(InsideAJobButNotInAStep, StrategiesOfOneTaskRun) {
  for (const char* strategy : {"one-device", "mirrored", "central-storage"}) {
    EXPECT_EQ(error_of({"train", "--strategy", strategy}, kBatchScript), "");
  }
}

TEST(InAStepOfSeveralTasks, StrategiesOfOneTaskAreRefused) {
  const std::string line = error_of({"train", "--strategy", "mirrored"}, kStep);
  EXPECT_TRUE(contains(line, "--strategy mirrored is one task, but Slurm made this task 2 of 3"));
}

TEST(InAStepOfSeveralTasks, TheStrategyDecidesWhetherAComponentServes) {
  const auto cluster = [](const char* strategy) {
    return std::get<TrainOptions>(parse({"train", "--strategy", strategy}, kStep + kComponents))
        .cluster;
  };
  EXPECT_EQ(cluster("multi-worker-mirrored").world_size, 3);
  EXPECT_EQ(cluster("multi-worker-mirrored").index, 2);
  EXPECT_EQ(cluster("parameter-server").num_servers, 1);
  EXPECT_EQ(cluster("parameter-server").world_size, 2);
  EXPECT_EQ(cluster("parameter-server").index, 1);
}

std::vector<std::string> pipeline_with(const std::vector<std::string>& more) {
  return as_words("train --strategy pipeline --share-devices", more);
}

TEST(InAStepOfSeveralTasks, APipelineHasAStageForEach) {
  const auto stages = [](const std::vector<std::string>& more) {
    return std::get<TrainOptions>(parse(pipeline_with(more), kStep)).strategy.stages;
  };
  EXPECT_EQ(stages({}), 3);
  EXPECT_EQ(stages({"--stages", "3"}), 3);
  EXPECT_EQ(stages({"--cut", "conv1,fc1"}), 3);
  EXPECT_EQ(stages({"--transport", "tcp", "--link-delay", "1ms"}), 3);
  const std::string line = error_of(pipeline_with({"--stages", "2"}), kStep);
  EXPECT_EQ(
      line,
      "--stages 2: Slurm started 3 tasks, and each is one stage; leave --stages out, or start "
      "2 tasks");
  EXPECT_TRUE(
      contains(error_of(pipeline_with({"--cut", "fc1"}), kStep), "give 2 nodes, or start 2 tasks"));
}

TEST(APipelineOfOneTask, HasNoLinks) {
  EXPECT_TRUE(
      contains(error_of(pipeline_with({"--transport", "tcp"}), {}), "are in one process here"));
  EXPECT_TRUE(
      contains(error_of(pipeline_with({"--link-delay", "1ms"}), {}), "are in one process here"));
  EXPECT_TRUE(contains(error_of(pipeline_with({"--stages", "2", "--cut", "a,b"}), {}),
                       "--stages 2: --cut gives 3 stages"));
  EXPECT_TRUE(contains(error_of({"train", "--cut", "conv1"}, {}), "--cut"));
}

TEST(InAStepOfSeveralTasks, AParameterServerJobNeedsServers) {
  const std::string line = error_of({"train", "--strategy", "parameter-server"}, kStep);
  EXPECT_TRUE(contains(line, "no servers", "give --servers M under srun"));
  EXPECT_EQ(error_of({"train", "--strategy", "parameter-server", "--servers", "1"}, kStep), "");
}

TEST(InAStepOfSeveralTasks, AJobWithServersNeedsARendezvousAddress) {
  const Variables spread = kStep + Variables{{"SLURM_DISTRIBUTION", "arbitrary"}};
  const std::string line =
      error_of({"train", "--strategy", "parameter-server", "--servers", "1"}, spread);
  EXPECT_TRUE(contains(line, "Slurm does not give the address of server 0"));
  EXPECT_EQ(
      error_of(as_words("train --strategy parameter-server --servers 1 --rendezvous n5"), spread),
      "");
}

// torch.distributed.launch adds --local-rank for the scripts that it starts.
TEST(ALocalRankOnTheCommandLine, IsTakenAndIgnored) {
  const std::vector<std::vector<std::string>> spellings = {{"cluster", "--local-rank=1"},
                                                           {"cluster", "--local_rank", "1"},
                                                           {"--local-rank=1", "cluster"},
                                                           {"--local_rank=1", "cluster"}};
  for (const std::vector<std::string>& arguments : spellings) {
    const ClusterSpec cluster = std::get<ClusterOptions>(parse(arguments, {})).cluster;
    EXPECT_EQ(cluster.source, "none");
    EXPECT_EQ(cluster.local_rank, 0);
  }
  EXPECT_EQ(error_of({"train", "--local-rank", "0"}, {}), "");
  const std::string help = std::get<TextOptions>(parse({"train", "--help"}, {})).text;
  EXPECT_FALSE(contains(help, "local-rank")) << "only torch.distributed.launch uses it";
}

TEST(Serve, TakesItsNumbersFromTheStep) {
  const Variables first =
      kStep + kComponents +
      Variables{{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURMD_NODENAME", "n5"}};
  const ClusterSpec cluster = std::get<ServeOptions>(parse({"serve"}, first)).cluster;
  EXPECT_EQ(cluster.role, Role::kServer);
  EXPECT_EQ(cluster.index, 0);
  EXPECT_EQ(cluster.num_servers, 1);
  EXPECT_EQ(cluster.world_size, 2);
  EXPECT_EQ(cluster.rendezvous.endpoint->host, "n5");
  EXPECT_TRUE(contains(error_of({"serve", "--index", "1"}, first), "--index 1: Slurm gives 0"));
  EXPECT_TRUE(contains(error_of({"serve", "--workers", "5"}, first),
                       "1 servers and 5 workers make 6 tasks"));
}

TEST(Serve, MayBeTheSecondComponentWhenTheFlagsOfItsWorkersRequireIt) {
  const ClusterSpec server = std::get<ServeOptions>(parse({"serve"}, kStep + kComponents)).cluster;
  EXPECT_EQ(server.index, 1);
  EXPECT_EQ(server.num_servers, 2);
  const Variables first =
      kStep + kComponents +
      Variables{{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURMD_NODENAME", "n5"}};
  const ClusterSpec worker =
      std::get<TrainOptions>(
          parse({"train", "--strategy", "parameter-server", "--role", "worker"}, first))
          .cluster;
  EXPECT_EQ(worker.role, Role::kWorker);
  EXPECT_EQ(worker.num_servers, 2);
  EXPECT_EQ(worker.rendezvous.endpoint, server.rendezvous.endpoint);
}

TEST(Serve, ByHandOutranksTheStepItRunsIn) {
  const ClusterSpec cluster =
      std::get<ServeOptions>(
          parse({"serve", "--workers", "4", "--rendezvous", "h:5"}, kStep + kComponents))
          .cluster;
  EXPECT_EQ(cluster.source, "flags");
  EXPECT_EQ(cluster.world_size, 4);
  EXPECT_EQ(cluster.num_servers, 1);
  EXPECT_EQ(cluster.index, 0);
}

const Variables kLaunched = {{"SYNCOPATE_ROLE", "worker"},
                             {"SYNCOPATE_INDEX", "1"},
                             {"SYNCOPATE_WORKERS", "2"},
                             {"SYNCOPATE_RENDEZVOUS", "127.0.0.1:5"}};

std::chrono::milliseconds time_to_meet(std::vector<std::string> flags, const Variables& variables) {
  flags.insert(flags.begin(), "train");
  return std::get<TrainOptions>(parse(std::move(flags), variables)).rendezvous_timeout;
}

TEST(RendezvousTimeout, IsAMinuteUnderLaunchAndLongerForServersOnGpus) {
  using std::chrono::seconds;
  const Variables with_servers = kLaunched + Variables{{"SYNCOPATE_SERVERS", "1"}};
  const std::string mirrored = "--strategy=multi-worker-mirrored";
  const std::string served = "--strategy=parameter-server";
  EXPECT_EQ(time_to_meet({mirrored}, kLaunched), seconds(60))
      << "on a busy machine a task did not answer for 5 s, which ended the job";
  EXPECT_EQ(time_to_meet({mirrored, "--devices", "cuda"}, kLaunched), seconds(60));
  EXPECT_EQ(time_to_meet({mirrored, "--devices", "cuda:0"}, kLaunched), seconds(60));
  EXPECT_EQ(time_to_meet({mirrored, "--devices", "cuda"}, kStep), seconds(120));
  EXPECT_EQ(time_to_meet({served}, with_servers), seconds(60));
  EXPECT_EQ(time_to_meet({served, "--devices", "cuda"}, with_servers), seconds(300));
  EXPECT_EQ(time_to_meet(
                {served, "--devices", "cuda"},
                with_servers + Variables{{"SYNCOPATE_ROLE", "server"}, {"SYNCOPATE_INDEX", "0"}}),
            seconds(300))
      << "a server waits as long as its workers take";
}

TEST(RendezvousTimeout, IsTheGivenOneEvenOnGpus) {
  EXPECT_EQ(time_to_meet(
                as_words("--strategy=multi-worker-mirrored --devices cuda --rendezvous-timeout 7"),
                kLaunched),
            std::chrono::seconds(7));
}

TEST(Serve, OutsideOfAnyClusterNamesTheMissingFlags) {
  EXPECT_TRUE(contains(error_of({"serve"}, {}), "--workers N and --rendezvous HOST:PORT"));
}

TEST(ClusterCommand, CanWriteTfConfig) {
  const auto options = std::get<ClusterOptions>(
      parse({"cluster", "--as", "tf-config", "--port-base", "8888"}, kStep));
  EXPECT_TRUE(options.as_tf_config);
  EXPECT_EQ(options.port_base, 8888);
  EXPECT_TRUE(contains(error_of({"cluster", "--port-base", "8888"}, kStep), "--as tf-config"));
  EXPECT_TRUE(contains(error_of({"cluster", "--as", "yaml"}, kStep), "--as yaml"));
  EXPECT_TRUE(contains(error_of({"cluster", "--as", "tf-config", "--port-base", "70000"}, kStep),
                       "--port-base 70000: expected a whole number from 1 to 65535"));
}

}  // namespace
}  // namespace syncopate
