// Tests the command lines of `launch` and `cluster`.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "deploy/cli/command_line.h"
#include "models/base/errors.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

LaunchOptions parse_launch(const Arguments& arguments, const Environment& environment = {}) {
  return std::get<LaunchOptions>(parse_command_line(as_words("launch", arguments), environment));
}

std::string error_of(Arguments arguments) {
  return message_of<Error>([&] { parse_command_line(arguments, {}); });
}

TEST(LaunchFlags, EndAtTheTwoDashes) {
  const LaunchOptions options =
      parse_launch(as_words("--workers 3 -- train --strategy multi-worker-mirrored"));
  EXPECT_EQ(options.workers, 3);
  EXPECT_EQ(options.role_arguments, (Arguments{"train", "--strategy", "multi-worker-mirrored"}));
  EXPECT_EQ(options.rules.workers.on_failure, FailureRule::kStop);
  EXPECT_EQ(options.rules.most_restarts, 0);
  EXPECT_FALSE(options.with_mpirun);
}

TEST(LaunchFlags, TakeThePathOfAProgramInPlaceOfTrain) {
  const LaunchOptions options =
      parse_launch(as_words("--workers 2 --servers 1 -- /bin/true --strategy parameter-server "
                            "--table points.csv --steps 7"));
  EXPECT_EQ(options.program, "/bin/true");
  EXPECT_EQ(options.role_arguments,
            as_words("--strategy parameter-server --table points.csv --steps 7"));
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
  EXPECT_TRUE(contains(
      error_of(
          as_words("launch --workers 2 --restart 1 -- /bin/true --strategy multi-worker-mirrored")),
      "give train a --checkpoint-dir"));
}

TEST(LaunchFlags, SetWhatTheyName) {
  const LaunchOptions options = parse_launch(
      as_words("--workers=2 --on-failure continue --restart 4 --restart-after 1.5 --env A=1 --env "
               "B=x=y -- train --strategy=multi-worker-mirrored --checkpoint-dir=ck"),
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
    return parse_launch(as_words("--workers 2 --servers 1 --restart 2 -- train --strategy "
                                 "parameter-server --checkpoint-dir ck --consistency",
                                 consistency))
        .rules;
  };
  EXPECT_EQ(rules("async").workers.on_failure, FailureRule::kContinue);
  EXPECT_TRUE(rules("async").workers.restarts_alone);
  EXPECT_EQ(rules("sync").workers.on_failure, FailureRule::kStop);
  EXPECT_FALSE(rules("sync").workers.restarts_alone);
  EXPECT_TRUE(rules("sync").servers.restarts_alone);
}

TEST(LaunchFlags, RestartAsynchronousWorkersWithoutCheckpointsToo) {
  const LaunchRules rules =
      parse_launch(
          as_words("--workers 2 --servers 1 --restart 2 -- train --strategy parameter-server"))
          .rules;
  EXPECT_TRUE(rules.workers.restarts_alone);
  EXPECT_FALSE(rules.servers.restarts_alone);
  EXPECT_FALSE(rules.restarts_together);
}

TEST(LaunchFlags, DetectARequestForMpi) {
  const auto sees = [](const Arguments& more) {
    return parse_launch(as_words("--workers 2 -- train --strategy multi-worker-mirrored", more))
        .with_mpirun;
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
  EXPECT_TRUE(contains(line, GetParam().says)) << "'" << line << "'";
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
        BadLaunch{as_words("launch --workers 2 -- /bin/true --model mlp"),
                  "--model: true has a network and data of its own; leave the flag out"},
        BadLaunch{{"launch", "--workers", "0", "--", "train"}, "--workers 0: expected"},
        BadLaunch{
            as_words("launch --workers 2 --servers 1 -- train --strategy multi-worker-mirrored"),
            "choose --strategy parameter-server"},
        BadLaunch{as_words("launch --workers 2 --servers 1 -- train --strategy "
                           "multi-worker-mirrored --collective mpi"),
                  "--servers 1: a job under --collective mpi has no servers"},
        BadLaunch{as_words("launch --workers 2 -- train --strategy parameter-server"),
                  "the job has no servers; give launch --servers 1 or more"},
        BadLaunch{as_words("launch --workers 2 --servers 1 --restart 1 -- train --strategy "
                           "parameter-server --consistency sync"),
                  "give train a --checkpoint-dir"},
        BadLaunch{as_words("launch --workers 2 --servers 1 --restart 1 --on-failure stop -- train "
                           "--strategy parameter-server"),
                  "give train a --checkpoint-dir"},
        BadLaunch{as_words("launch --workers 2 --servers -1 -- train"), "--servers -1"},
        BadLaunch{as_words("launch --workers 2 --on-failure go -- train"),
                  "--on-failure go: no such name"},
        BadLaunch{as_words("launch --workers 2 --restart-after 46 -- train"),
                  "--restart-after 46: expected seconds from 0 to 45"},
        BadLaunch{as_words("launch --workers 2 --restart -1 -- train"), "--restart -1"},
        BadLaunch{
            as_words("launch --workers 2 --restart 1 -- train --strategy multi-worker-mirrored"),
            "give train a --checkpoint-dir"},
        BadLaunch{as_words("launch --workers 2 -- train --stepz 2"),
                  "unknown flag --stepz; did you mean '--steps'?"},
        BadLaunch{{"launch", "--workers", "2", "--", "train"}, "choose --strategy multi-worker"},
        BadLaunch{as_words("launch --workers 2 --env A -- train"), "--env A: expected"},
        BadLaunch{as_words("launch --workers 2 --env SYNCOPATE_INDEX=1 -- train"),
                  "launch sets this variable for each role"},
        BadLaunch{as_words("launch --workers 2 -- train --strategy multi-worker-mirrored --rank=0 "
                           "--world-size=2 --rendezvous=127.0.0.1:4000"),
                  "launch gives each task its own"},
        BadLaunch{{"launch", "--wrokers", "2", "--", "train"}, "did you mean '--workers'"},
        BadLaunch{as_words("launch --workers 2 -- train --strategy mirrored"),
                  "choose --strategy multi-worker-mirrored"},
        BadLaunch{as_words("serve --rendezvous 127.0.0.1:4000"), "--workers"},
        BadLaunch{{"serve", "--workers", "1"}, "--rendezvous"},
        BadLaunch{as_words("serve --workers 1 --rendezvous nonsense"), "nonsense"},
        BadLaunch{as_words("serve --workers 0 --rendezvous 127.0.0.1:4000"), "--workers 0"},
        BadLaunch{as_words("serve --workers 1 --rendezvous 127.0.0.1:4000 --frobnicate"),
                  "--frobnicate"},
        BadLaunch{as_words("serve --workers 1 --rendezvous 127.0.0.1:4000 --index 5"), "--index 5"},
        BadLaunch{as_words("serve --workers 1 --rendezvous 127.0.0.1:4000 --servers 0"),
                  "--servers 0"},
        BadLaunch{as_words("serve --workers 1 --rendezvous 127.0.0.1:4000 --port 70000"),
                  "--port 70000"},
        BadLaunch{as_words("serve --workers 1 --rendezvous 127.0.0.1:4000 --snapshot-every 0"),
                  "--snapshot-every"},
        BadLaunch{as_words("serve --workers 1 --rendezvous 127.0.0.1:4000 --peer-timeout 0"),
                  "--peer-timeout"},
        BadLaunch{as_words("serve --workers 1 --rendezvous 127.0.0.1:4000 --record", ""),
                  "--record is empty"},
        BadLaunch{as_words("serve --workers 1 --rendezvous 127.0.0.1:4000 --checkpoint-dir", ""),
                  "--checkpoint-dir is empty"},
        BadLaunch{{"cluster", "--rank", "1"}, "missing --world-size and --rendezvous"},
        BadLaunch{{"cluster", "--rank", "x"}, "--rank"},
        BadLaunch{{"cluster", "--workers", "1"}, "unknown flag --workers"}));

TEST(ClusterFlagList, OutranksTheEnvironment) {
  const Arguments arguments = as_words("cluster --rank 1 --world-size 2 --rendezvous h:5");
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
  EXPECT_TRUE(
      contains(error_of(with_joins({"worker=1,at=3s"}, synchronous)), "fixed number of workers"));
  EXPECT_TRUE(contains(error_of(with_joins({"worker=0,at=3s", "worker=1,at=3s"}, served)),
                       "one worker must be there from the start"));
  EXPECT_TRUE(contains(error_of(with_joins({"worker=1,at=3s", "worker=1,at=4s"}, served)),
                       "is named twice"));
  EXPECT_TRUE(contains(error_of(with_joins({"worker=1"}, served)), "worker=W,at=TIME"));
  EXPECT_TRUE(contains(error_of(with_joins({"worker=1024,at=1s"}, served)), "below 1024"));
  EXPECT_TRUE(contains(
      error_of(as_words(
          "launch --workers 2 --join worker=1,at=3s -- train --strategy multi-worker-mirrored")),
      "--strategy multi-worker-mirrored has a fixed number"));
}

}  // namespace
}  // namespace syncopate
