// Tests training for a given time, and the workers' metrics lines, which report how the time was
// spent.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

const Arguments kSmall{"--model", "mlp", "--data", "synthetic:1x8x8:4:6400"};

// Under each of these strategies, the other workers have to wait for a slow worker.
const std::vector<Arguments> kInStep{
    mirrored(2), as_words("train --strategy central-storage --replicas 2 --share-devices"),
    multi_worker(2), parameter_servers({.workers = 2, .servers = 2}, {"--consistency", "sync"}),
    parameter_servers({.workers = 2, .servers = 1}, {"--consistency", "ssp"})};

std::string name_of(const testing::TestParamInfo<Arguments>& info) {
  return std::to_string(info.index);
}

class AJobOfTwo : public testing::TestWithParam<Arguments> {
 protected:
  TrainingRuns runs_;
};
using AJobThatWaits = AJobOfTwo;

TEST_P(AJobOfTwo, EndsAllTasksWhenItsTimeIsUp) {
  const ProgramResult result = runs_.train(
      GetParam(), kSmall + as_words("--epochs 1000000 --max-seconds 1 --service-time constant:5"));
  const nlohmann::json summary = runs_.summary();
  EXPECT_GT(summary.at("seconds"), 0.9);
  EXPECT_LT(summary.at("seconds"), 30.0) << "of a busy machine";
  EXPECT_GT(summary.at("test_accuracy"), 0.0) << result.err;
  EXPECT_EQ(runs_.evaluations().back().at("step"), summary.at("steps"));
  EXPECT_FALSE(contains(result.err, "stopped by"));
}

TEST_P(AJobThatWaits, ReportsHowLongItWaitedForASlowWorker) {
  runs_.train(GetParam(),
              kSmall + as_words("--steps 60 --service-time constant:4 --slow worker=1,factor=5"));
  std::vector<nlohmann::json> workers = runs_.lines("worker");
  ASSERT_EQ(workers.size(), 2U);
  if (workers[0].at("worker") == 1) std::swap(workers[0], workers[1]);
  const double of_first = workers[0].at("peers_wait_seconds");
  const double of_slow = workers[1].at("peers_wait_seconds");
  // The slow worker needs 16 ms longer than the other worker in each step that both take.
  const double steps = workers[0].at("steps");
  EXPECT_GT(of_first, 0.5 * 0.016 * (steps - 4.0));
  // Its own 20 ms of a step are no waiting. On a busy machine it waits for the other worker, too.
  const double slow_steps = workers[1].at("steps");
  const double slow_seconds = workers[1].at("seconds");
  EXPECT_LT(of_slow, slow_seconds - 0.9 * 0.020 * slow_steps);
}

INSTANTIATE_TEST_SUITE_P(
    Under, AJobOfTwo,
    testing::ValuesIn(std::vector<Arguments>{
        Arguments{"train"}, mirrored(2), multi_worker(2),
        parameter_servers({.workers = 2, .servers = 2}, {}),
        parameter_servers({.workers = 2, .servers = 1},
                          {"--consistency", "sync", "--backup-workers", "1"}),
        as_words(
            "train --strategy central-storage --replicas 2 --share-devices --consistency async")}),
    name_of);
INSTANTIATE_TEST_SUITE_P(Under, AJobThatWaits, testing::ValuesIn(kInStep), name_of);

}  // namespace
}  // namespace syncopate::test
