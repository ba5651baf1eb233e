// Tests the command lines of `launch` and `cluster`.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "deploy/cli/command_line.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

using Arguments = std::vector<std::string>;

LaunchOptions parse_launch(Arguments arguments, const Environment& environment = {}) {
  arguments.insert(arguments.begin(), "launch");
  return std::get<LaunchOptions>(parse_command_line(arguments, environment));
}

std::string error_of(Arguments arguments) {
  try {
    parse_command_line(arguments, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(LaunchFlags, EndAtTheTwoDashes) {
  const LaunchOptions options =
      parse_launch({"--workers", "3", "--", "train", "--strategy", "multi-worker-mirrored"});
  EXPECT_EQ(options.workers, 3);
  EXPECT_EQ(options.role_arguments, (Arguments{"train", "--strategy", "multi-worker-mirrored"}));
  EXPECT_EQ(options.rules.workers.on_failure, FailureRule::kStop);
  EXPECT_EQ(options.rules.most_restarts, 0);
  EXPECT_FALSE(options.with_mpirun);
}

TEST(LaunchFlags, TakeThePathOfAProgramInPlaceOfTrain) {
  const LaunchOptions options =
      parse_launch({"--workers", "2", "--servers", "1", "--", "/bin/true", "--strategy",
                    "parameter-server", "--table", "points.csv", "--steps", "7"});
  EXPECT_EQ(options.program, "/bin/true");
  EXPECT_EQ(options.role_arguments,
            (Arguments{"--strategy", "parameter-server", "--table", "points.csv", "--steps", "7"}));
  // Servers are tasks of this program, which does not know the flags of the other one.
  const Arguments& servers = options.server_arguments;
  ASSERT_FALSE(servers.empty());
  EXPECT_EQ(servers.front(), "train");
  EXPECT_EQ(std::ranges::count(servers, "--table"), 0);
  const auto steps = std::ranges::find(servers, "--steps");
  ASSERT_NE(steps, servers.end());
  EXPECT_EQ(*std::next(steps), "7");
}

TEST(LaunchFlags, OfAProgramDecideAboutRestarts) {
  EXPECT_NE(error_of({"launch", "--workers", "2", "--restart", "1", "--", "/bin/true", "--strategy",
                      "multi-worker-mirrored"})
                .find("give train a --checkpoint-dir"),
            std::string::npos);
}

TEST(LaunchFlags, SetWhatTheyName) {
  const LaunchOptions options =
      parse_launch({"--workers=2", "--on-failure", "continue", "--restart", "4", "--restart-after",
                    "1.5", "--env", "A=1", "--env", "B=x=y", "--", "train",
                    "--strategy=multi-worker-mirrored", "--checkpoint-dir=ck"},
                   Environment({{"A", "0"}, {"C", "2"}}));
  EXPECT_EQ(options.rules.workers.on_failure, FailureRule::kContinue);
  EXPECT_EQ(options.rules.most_restarts, 4);
  EXPECT_EQ(options.rules.first_back_off, std::chrono::milliseconds(1500));
  EXPECT_EQ(options.rules.longest_back_off, options.rules.first_back_off);
  EXPECT_EQ(options.rules.pause_before_all, options.rules.first_back_off);
  EXPECT_EQ(options.environment, (Environment::Variables{{"A", "1"}, {"B", "x=y"}, {"C", "2"}}));
  EXPECT_EQ(options.added_variables, (Arguments{"A", "B"}));
}

TEST(LaunchFlags, WithServersTakeTheFailureRulesFromTheConsistency) {
  const auto rules = [](const char* consistency) {
    return parse_launch({"--workers", "2", "--servers", "1", "--restart", "2", "--", "train",
                         "--strategy", "parameter-server", "--checkpoint-dir", "ck",
                         "--consistency", consistency})
        .rules;
  };
  EXPECT_EQ(rules("async").workers.on_failure, FailureRule::kContinue);
  EXPECT_TRUE(rules("async").workers.restarts_alone);
  EXPECT_EQ(rules("sync").workers.on_failure, FailureRule::kStop);
  EXPECT_FALSE(rules("sync").workers.restarts_alone);
  EXPECT_TRUE(rules("sync").servers.restarts_alone);
}

TEST(LaunchFlags, RestartAsynchronousWorkersWithoutCheckpointsToo) {
  const LaunchRules rules = parse_launch({"--workers", "2", "--servers", "1", "--restart", "2",
                                          "--", "train", "--strategy", "parameter-server"})
                                .rules;
  EXPECT_TRUE(rules.workers.restarts_alone);
  EXPECT_FALSE(rules.servers.restarts_alone);
  EXPECT_FALSE(rules.restarts_together);
}

TEST(LaunchFlags, DetectARequestForMpi) {
  const auto sees = [](const Arguments& more) {
    Arguments arguments{"--workers", "2", "--", "train", "--strategy", "multi-worker-mirrored"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return parse_launch(arguments).with_mpirun;
  };
  EXPECT_TRUE(sees({"--collective", "mpi"}));
  EXPECT_TRUE(sees({"--collective=mpi"}));
  EXPECT_FALSE(sees({"--collective", "mpi", "--collective", "ring"}));
  EXPECT_FALSE(sees({}));
}

struct BadLaunch {
  Arguments arguments;
  std::string says;
};

class BadLaunchFlags : public testing::TestWithParam<BadLaunch> {};

TEST_P(BadLaunchFlags, AreRefusedWithTheReasonInOneLine) {
  const std::string line = error_of(GetParam().arguments);
  EXPECT_NE(line.find(GetParam().says), std::string::npos) << "'" << line << "'";
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
}

INSTANTIATE_TEST_SUITE_P(
    EachKind, BadLaunchFlags,
    testing::Values(
        BadLaunch{{"launch"}, "--workers is missing; give --workers N"},
        BadLaunch{{"launch", "--", "train"}, "--workers is missing; give --workers N"},
        BadLaunch{{"launch", "--workers", "2"}, "launch: the command is missing"},
        BadLaunch{{"launch", "--workers", "2", "--"}, "launch: the command is missing"},
        BadLaunch{{"launch", "--workers", "2", "train"},
                  "unexpected argument train; put -- before train"},
        BadLaunch{{"launch", "--workers", "2", "--", "info"},
                  "launch starts train or doctor, not info"},
        BadLaunch{{"launch", "--workers", "2", "--", "./no-program"},
                  "launch: ./no-program is not an executable file; give the path of a program"},
        BadLaunch{{"launch", "--workers", "2", "--", "/bin/true", "--model", "mlp"},
                  "--model: true has a network and data of its own; leave the flag out"},
        BadLaunch{{"launch", "--workers", "0", "--", "train"}, "--workers 0: expected"},
        BadLaunch{{"launch", "--workers", "2", "--servers", "1", "--", "train", "--strategy",
                   "multi-worker-mirrored"},
                  "choose --strategy parameter-server"},
        BadLaunch{{"launch", "--workers", "2", "--servers", "1", "--", "train", "--strategy",
                   "multi-worker-mirrored", "--collective", "mpi"},
                  "--servers 1: a job under --collective mpi has no servers"},
        BadLaunch{{"launch", "--workers", "2", "--", "train", "--strategy", "parameter-server"},
                  "syncopate launch --servers M"},
        BadLaunch{{"launch", "--workers", "2", "--servers", "1", "--restart", "1", "--", "train",
                   "--strategy", "parameter-server", "--consistency", "sync"},
                  "give train a --checkpoint-dir"},
        BadLaunch{{"launch", "--workers", "2", "--servers", "1", "--restart", "1", "--on-failure",
                   "stop", "--", "train", "--strategy", "parameter-server"},
                  "give train a --checkpoint-dir"},
        BadLaunch{{"launch", "--workers", "2", "--servers", "-1", "--", "train"}, "--servers -1"},
        BadLaunch{{"launch", "--workers", "2", "--on-failure", "go", "--", "train"},
                  "--on-failure go: no such name"},
        BadLaunch{{"launch", "--workers", "2", "--restart-after", "46", "--", "train"},
                  "--restart-after 46: expected seconds from 0 to 45"},
        BadLaunch{{"launch", "--workers", "2", "--restart", "-1", "--", "train"}, "--restart -1"},
        BadLaunch{{"launch", "--workers", "2", "--restart", "1", "--", "train", "--strategy",
                   "multi-worker-mirrored"},
                  "give train a --checkpoint-dir"},
        BadLaunch{{"launch", "--workers", "2", "--", "train", "--stepz", "2"},
                  "unknown flag --stepz; did you mean '--steps'?"},
        BadLaunch{{"launch", "--workers", "2", "--", "train"}, "choose --strategy multi-worker"},
        BadLaunch{{"launch", "--workers", "2", "--env", "A", "--", "train"}, "--env A: expected"},
        BadLaunch{{"launch", "--workers", "2", "--env", "SYNCOPATE_INDEX=1", "--", "train"},
                  "launch sets this variable for each role"},
        BadLaunch{{"launch", "--workers", "2", "--", "train", "--strategy", "multi-worker-mirrored",
                   "--rank=0", "--world-size=2", "--rendezvous=127.0.0.1:4000"},
                  "launch gives each task its own"},
        BadLaunch{{"launch", "--wrokers", "2", "--", "train"}, "did you mean '--workers'"},
        BadLaunch{{"cluster", "--rank", "1"}, "missing --world-size and --rendezvous"},
        BadLaunch{{"cluster", "--rank", "x"}, "--rank"},
        BadLaunch{{"cluster", "--workers", "1"}, "unknown flag --workers"}));

TEST(ClusterFlagList, OutranksTheEnvironment) {
  const Arguments arguments{"cluster", "--rank", "1", "--world-size", "2", "--rendezvous", "h:5"};
  const auto options = std::get<ClusterOptions>(parse_command_line(
      arguments, Environment({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}})));
  EXPECT_EQ(options.cluster.source, "flags");
  EXPECT_EQ(options.cluster.index, 1);
}

Arguments with_joins(const Arguments& joins, const Arguments& train) {
  Arguments arguments{"launch", "--workers", "2", "--servers", "1"};
  for (const std::string& join : joins) arguments.insert(arguments.end(), {"--join", join});
  arguments.insert(arguments.end(), {"--", "train"});
  arguments.insert(arguments.end(), train.begin(), train.end());
  return arguments;
}

TEST(LaunchFlags, NameWorkersThatStartLater) {
  const auto parsed =
      parse_command_line(with_joins({"worker=1,at=500ms", "worker=4,at=30s"},
                                    {"--strategy", "parameter-server", "--consistency", "ssp"}),
                         {});
  const std::vector<Join>& joins = std::get<LaunchOptions>(parsed).joins;
  ASSERT_EQ(joins.size(), 2U);
  EXPECT_EQ(joins[0].worker, 1);
  EXPECT_EQ(joins[0].at_seconds, 0.5);
  EXPECT_EQ(joins[1].worker, 4);
}

TEST(LaunchFlags, RefuseLateWorkersUnderSynchronousStrategies) {
  const Arguments served{"--strategy", "parameter-server"};
  const Arguments synchronous{"--strategy", "parameter-server", "--consistency", "sync"};
  EXPECT_NE(error_of(with_joins({"worker=1,at=3s"}, synchronous)).find("fixed number of workers"),
            std::string::npos);
  EXPECT_NE(error_of(with_joins({"worker=0,at=3s", "worker=1,at=3s"}, served))
                .find("one worker must be there from the start"),
            std::string::npos);
  EXPECT_NE(
      error_of(with_joins({"worker=1,at=3s", "worker=1,at=4s"}, served)).find("is named twice"),
      std::string::npos);
  EXPECT_NE(error_of(with_joins({"worker=1"}, served)).find("worker=W,at=TIME"), std::string::npos);
  EXPECT_NE(error_of(with_joins({"worker=1024,at=1s"}, served)).find("below 1024"),
            std::string::npos);
  EXPECT_NE(error_of({"launch", "--workers", "2", "--join", "worker=1,at=3s", "--", "train",
                      "--strategy", "multi-worker-mirrored"})
                .find("--strategy multi-worker-mirrored has a fixed number"),
            std::string::npos);
}

}  // namespace
}  // namespace syncopate
