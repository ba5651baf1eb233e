#include "tests/end_to_end/support/training_runs.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/support/as_words.h"

namespace syncopate::test {
namespace {

std::string metrics_name(int run) { return "metrics" + std::to_string(run) + ".jsonl"; }

}  // namespace

Arguments parameter_servers(const ServedBy& roles, const Arguments& more) {
  return as_words("launch --workers", std::to_string(roles.workers), "--servers",
                  std::to_string(roles.servers), "-- train --strategy parameter-server") +
         more;
}

Arguments one_device() { return {"train", "--strategy", "one-device"}; }

Arguments mirrored(int replicas) {
  return as_words("train --strategy mirrored --replicas", std::to_string(replicas),
                  "--share-devices");
}

Arguments multi_worker(int workers) {
  return as_words("launch --workers", std::to_string(workers),
                  "-- train --strategy multi-worker-mirrored");
}

Arguments few_steps(int steps) {
  return as_words("--batch-size 24 --steps", std::to_string(steps),
                  "--threads 1 --no-progress --seed 7 --optimizer momentum --learning-rate 0.01");
}

void expect_same_bits_under_synchronous_strategies(
    const std::function<std::string(const Arguments& where, const Arguments& what)>& hash_of,
    const Arguments& what) {
  const std::string expected =
      hash_of({"train", "--strategy", "mirrored", "--replicas", "2"}, what);
  EXPECT_NE(expected, "");
  EXPECT_EQ(hash_of({"train", "--strategy", "central-storage", "--replicas", "2"}, what), expected);
  EXPECT_EQ(hash_of(as_words("launch --workers 2 -- train --strategy multi-worker-mirrored"), what),
            expected);
  EXPECT_EQ(hash_of(as_words("launch --workers 2 --servers 1 -- train --strategy parameter-server"),
                    what + Arguments{"--consistency", "sync"}),
            expected);
}

ProgramResult TrainingRuns::train(const Arguments& where, const Arguments& what) {
  const Arguments common =
      as_words("--threads 1 --no-progress --seed 7 --metrics", dir_ / metrics_name(++runs_));
  ProgramResult result = run_syncopate(where + common + what);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result;
}

nlohmann::json TrainingRuns::summary() const {
  return test::summary_of(dir_ / metrics_name(runs_));
}

std::vector<nlohmann::json> TrainingRuns::evaluations() const { return lines("eval"); }

std::vector<nlohmann::json> TrainingRuns::lines(const std::string& event) const {
  return metrics_lines(dir_ / metrics_name(runs_), event);
}

nlohmann::json TrainingRuns::summary_of(const Arguments& where, const Arguments& what) {
  const ProgramResult result = train(where, what);
  if (result.exit_code != 0) return {};
  try {
    return summary();
  } catch (const std::exception& error) {
    throw std::runtime_error(error.what() + ("; the program printed: " + result.err));
  }
}

}  // namespace syncopate::test
