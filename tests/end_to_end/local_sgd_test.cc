// Tests --strategy local-sgd with real processes: they give the bits of replicas in one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/end_to_end/support/end_timer.h"
#include "tests/end_to_end/support/local_sgd_jobs.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/role_processes.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/task_results.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

class LocalSgdTasks : public testing::Test {
 protected:
  std::string hash_of(const Arguments& where, const Arguments& what) {
    return runs_.summary_of(where, what + few_steps(7)).at("weights_hash").get<std::string>();
  }
  TrainingRuns runs_;
};

// 24 samples of a step make shares of 8 for three replicas.
TEST_F(LocalSgdTasks, HaveTheBitsOfReplicasOverEitherTransport) {
  for (const char* model : {"--model mlp --data synthetic:1x28x28:10:2000",
                            "--model resnet20 --data synthetic:3x32x32:10:500"}) {
    for (const char* rounds : {"--sync-every 3", "--sync-every 2 --outer diloco"}) {
      const Arguments what = words_of(model) + words_of(rounds);
      const std::string expected = hash_of(local_sgd_replicas(3), what);
      for (const char* transport : {"--transport shm", "--transport tcp"}) {
        EXPECT_EQ(hash_of(local_sgd_tasks(3, transport), what), expected)
            << model << rounds << transport;
      }
    }
  }
}

TEST_F(LocalSgdTasks, WithSeveralReplicasAreOneJob) {
  const Arguments what = as_words("--model mlp --data synthetic:1x28x28:10:2000 --sync-every 3");
  EXPECT_EQ(hash_of(local_sgd_tasks(2, "--replicas 2"), what),
            hash_of(local_sgd_replicas(4), what));
}

TEST_F(LocalSgdTasks, OfOneWorkerAreOneDevice) {
  const Arguments what = as_words("--model mlp --data synthetic:1x28x28:10:2000");
  EXPECT_EQ(hash_of(local_sgd_tasks(1, "--sync-every 3"), what), hash_of(one_device(), what));
}

TEST_F(LocalSgdTasks, ExchangeOverMpi) {
  if (!std::filesystem::exists("/usr/bin/mpirun")) GTEST_SKIP() << "no mpirun on this machine";
  const Arguments what =
      as_words("--model mlp --data synthetic:1x28x28:10:2000 --sync-every 3") + few_steps(7);
  const double by_mpi =
      runs_.summary_of(local_sgd_tasks(3, "--collective mpi"), what).at("test_loss").get<double>();
  const double by_threads =
      runs_.summary_of(local_sgd_replicas(3), what).at("test_loss").get<double>();
  EXPECT_NEAR(by_mpi, by_threads, 1e-4 * by_threads);  // MPI adds in another order
}

TEST_F(LocalSgdTasks, ReportARefusalInOneLine) {
  for (const auto& [flags, expected] :
       {std::pair{"", "requires --sync-every N"},
        {"--sync-every 0", "--sync-every 0: expected a whole number"},
        {"--sync-every 9 --steps 8", "the whole run has 8 steps"},
        {"--sync-every 4 --replicas 2 --share-devices --sync-groups 3",
         "--sync-groups 3: expected a divisor of --sync-every 4"},
        {"--sync-every 2 --local-from 1", "--local-from requires --outer post-local"},
        {"--sync-every 2 --outer post-local", "requires --local-from EPOCH"},
        {"--sync-every 2 --outer post-local --local-from 3 --epochs 3",
         "--local-from 3: the run ends at epoch 3"},
        {"--sync-every 9 --outer post-local --local-from 1.5 --steps 8",
         "the whole run has 2 steps from epoch 1.5 on"}}) {
    const ProgramResult result = run_syncopate(as_words(
        "train --strategy local-sgd --model mlp --data synthetic:1x8x8:4:256", words_of(flags)));
    EXPECT_EQ(result.exit_code, 2) << flags;
    EXPECT_TRUE(contains(result.err, expected)) << result.err;
    const std::string line = result.err.substr(result.err.find("syncopate: "));
    EXPECT_EQ(std::ranges::count(line, '\n'), 1) << line;
  }
}

TEST_F(LocalSgdTasks, SaySettingsAndRounds) {
  const ProgramResult result = runs_.train(
      local_sgd_replicas(2),
      as_words("--model mlp --data synthetic:1x28x28:10:2000 --sync-every 3 --outer diloco") +
          few_steps(7));
  EXPECT_TRUE(contains(result.err,
                       "local-sgd: an exchange after every 3 steps; outer step diloco: learning "
                       "rate 0.7, Nesterov momentum 0.9"))
      << result.err;
}

TEST_F(LocalSgdTasks, RecordSettingsAndRoundsInTheirMetrics) {
  const Arguments what =
      as_words(
          "--model mlp --data synthetic:1x28x28:10:2000 --sync-every 3 --outer diloco "
          "--outer-momentum 0.5 --log-every 1") +
      few_steps(7);
  const nlohmann::json summary = runs_.summary_of(local_sgd_tasks(2, "--transport tcp"), what);
  const nlohmann::json expected = {
      {"sync_every", 3},       {"outer", "diloco"},      {"outer_learning_rate", 0.7},
      {"outer_momentum", 0.5}, {"outer_nesterov", true}, {"outer_scale_by_rate", false},
      {"inner_state", "keep"}};
  EXPECT_EQ(runs_.lines("begin").front().at("local_updates"), expected);
  std::vector<std::vector<int>> rounds;  // step, round, inner steps
  for (const nlohmann::json& line : runs_.lines("step")) {
    rounds.push_back({line.at("step"), line.at("round"), line.at("inner_steps")});
  }
  EXPECT_EQ(rounds, (std::vector<std::vector<int>>{{3, 1, 3}, {6, 2, 3}, {7, 3, 1}}));
  EXPECT_EQ(summary.at("rounds"), 3);
  EXPECT_GT(summary.at("exchange_seconds"), 0.0);
  // Three exchanges for seven steps; tasks exchange only sums.
  const double local = summary.at("bytes_per_sample").get<double>();
  const double synchronous =
      runs_
          .summary_of(multi_worker(2) + words_of("--transport tcp"),
                      as_words("--model mlp --data synthetic:1x28x28:10:2000") + few_steps(7))
          .at("bytes_per_sample")
          .get<double>();
  EXPECT_NEAR(local, synchronous * 3 / 7, 0.02 * synchronous);
}

TEST_F(LocalSgdTasks, AgreeOnTheLengthOfARoundAndTheOuterStep) {
  for (const auto& [first, second, flag] :
       {std::tuple{"--sync-every 2", "--sync-every 3", "--sync-every"},
        {"--sync-every 2", "--sync-every 2 --outer diloco", "--outer"}}) {
    const Port port(false);
    std::vector<Arguments> commands;
    for (const char* rounds : {first, second}) {
      commands.push_back(lone_task(commands.size(), port, std::string(rounds) + " --steps 3"));
    }
    for (const ProgramResult& result : run_all(commands)) {
      EXPECT_EQ(result.exit_code, 2);
      expect_one_line(result, {"rank 1 ", flag});
    }
  }
}

// A job of two tasks with rounds of four steps.
class ALocalSgdJob : public testing::Test {
 protected:
  // Returns the flags that all runs of a test share.
  Arguments flags(const std::string& more = "") const {
    return as_words(
        "--model mlp --data synthetic:1x8x8:4 --threads 1 --no-progress --log-every 1 --optimizer "
        "adam --sync-every 4 --eval-every 0",
        words_of(outer_), words_of(more));
  }
  Arguments kept(const std::string& more = "") const {
    return flags(more) +
           Arguments{"--checkpoint-dir", scratch_ / "ck", "--checkpoint-every", "10", "--resume"};
  }
  nlohmann::json train(const Arguments& what) {
    const auto metrics = scratch_ / ("m" + std::to_string(runs_++) + ".jsonl");
    last_ = successful(run_syncopate(what + Arguments{"--metrics", metrics}));
    return summary_of(metrics);
  }
  void kill_and_resume();

  std::string outer_ = "--outer slowmo";
  TemporaryFolder scratch_;
  ProgramResult last_;
  int runs_ = 0;
};

// Kills a worker three times. Expects that the job ends with the bits of an uninterrupted one.
void ALocalSgdJob::kill_and_resume() {
  const auto expected = train(local_sgd_tasks(2) + flags("--steps 602 --lr-schedule cosine"));
  for (const int lines : {1, 9, 40}) {
    const auto metrics = scratch_ / ("killed" + std::to_string(lines) + ".jsonl");
    RunningProgram launch(syncopate_command(local_sgd_tasks(2) +
                                            kept("--steps 602 --lr-schedule cosine") +
                                            Arguments{"--metrics", metrics}));
    const auto victim = worker_of(launch.pid(), lines % 2);
    ASSERT_TRUE(victim);
    ASSERT_TRUE(launch.wait_until_file_has(metrics, "\"event\":\"step\"", lines));
    ASSERT_EQ(kill(*victim, SIGKILL), 0);
    EXPECT_NE(launch.wait().exit_code, 0) << "it ended before the kill: nothing was tested";
  }
  const auto resumed = train(local_sgd_tasks(2) + kept("--steps 602 --lr-schedule cosine"));
  EXPECT_TRUE(contains(last_.err, "resumed from")) << last_.err;
  EXPECT_EQ(resumed.at("weights_hash"), expected.at("weights_hash"));
  EXPECT_EQ(resumed.at("samples"), expected.at("samples"));
}

TEST_F(ALocalSgdJob, KilledAtAnyTimeAndResumedHasTheBitsOfAnUninterruptedOne) { kill_and_resume(); }

// The first kill comes while the workers sum gradients, the others in rounds.
TEST_F(ALocalSgdJob, KilledBeforeAndAfterItsFirstRoundHasTheBitsOfAnUninterruptedOne) {
  outer_ = "--outer post-local --local-from 0.5";
  kill_and_resume();
}

TEST_F(ALocalSgdJob, AskedToStopFinishesItsRoundAndIsResumedToTheSameBits) {
  const auto metrics = scratch_ / "m.jsonl";
  RunningProgram launch(syncopate_command(local_sgd_tasks(2) + kept("--steps 100002") +
                                          Arguments{"--metrics", metrics}));
  const auto one = worker_of(launch.pid(), 1);
  ASSERT_TRUE(one);
  ASSERT_TRUE(launch.wait_until_file_has(metrics, "\"event\":\"step\"", 5));
  ASSERT_EQ(kill(*one, SIGTERM), 0);  // of one task only
  const ProgramResult stopped = launch.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_TRUE(contains(stopped.err, "the round is complete")) << stopped.err;
  const auto step = metrics_lines(metrics, "step").back().at("step").get<std::int64_t>();
  EXPECT_EQ(step % 4, 0) << "a round has four steps";
  const auto expected = train(local_sgd_tasks(2) + flags("--steps " + std::to_string(step + 6)));
  const auto resumed = train(local_sgd_tasks(2) + kept("--steps " + std::to_string(step + 6)));
  EXPECT_TRUE(contains(last_.err, "at step " + std::to_string(step))) << last_.err;
  EXPECT_EQ(resumed.at("weights_hash"), expected.at("weights_hash"));
}

TEST_F(ALocalSgdJob, MayHaveAnotherNumberOfWorkersAndAnotherStrategyAfterwards) {
  train(local_sgd_tasks(2) + kept("--steps 8"));
  train(local_sgd_tasks(3) + kept("--steps 16"));
  EXPECT_TRUE(contains(last_.err, "worker r of 3 continues with the state of worker r mod 2"));
  train(local_sgd_tasks(2) + kept("--steps 24"));
  EXPECT_TRUE(contains(last_.err, "worker r of 2 continues with the state of worker r mod 3"));
  train(
      as_words("train --model mlp --data synthetic:1x8x8:4 --threads 1 --optimizer adam --steps "
               "30 --resume --checkpoint-dir",
               scratch_ / "ck"));
  EXPECT_TRUE(contains(last_.err, "is the mean of the states of the 2 workers"));
  EXPECT_TRUE(contains(last_.err, "the outer momentum of the checkpoint is not used"));
  train(local_sgd_tasks(2) + kept("--steps 38"));
  EXPECT_TRUE(contains(last_.err, "every worker continues with the optimizer's state"));
  EXPECT_TRUE(contains(last_.err, "the outer momentum starts at zero"));
}

TEST_F(ALocalSgdJob, EndsInTimeWhenAWorkerDiesInTheMiddleOfARound) {
  constexpr const char* kOneRound = "--steps 200000000 --sync-every 100000000";
  for (const std::size_t failed : {0, 1}) {
    const Port port(false);
    RunningProgram first(lone_task(0, port, kOneRound));
    RunningProgram second(lone_task(1, port, kOneRound));
    const RunningProgram& victim = failed == 0 ? first : second;
    RunningProgram& other = failed == 0 ? second : first;
    ASSERT_TRUE(first.wait_until_err_has("an exchange after every 100000000 steps"));
    const EndTimer since_fault;
    victim.send(SIGKILL);
    const ProgramResult ended = other.wait();
    expect_ended_in_time(since_fault);
    EXPECT_EQ(ended.exit_code, 1);
    EXPECT_TRUE(contains(ended.err, "rank " + std::to_string(failed))) << ended.err;
  }
}

}  // namespace
}  // namespace syncopate::test
