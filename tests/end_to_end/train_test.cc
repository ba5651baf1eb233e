// Tests the output of a training run that succeeds.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

// Returns the flags of a run that takes about a second: 50,000 small samples and a small network.
Arguments small_run(const TemporaryFolder& scratch, const std::string& name,
                    const Arguments& more = {}) {
  return as_words("train --model mlp --data synthetic:1x8x8:4 --no-progress --threads 1 --metrics",
                  scratch / (name + ".jsonl"), more);
}

std::string weights_hash(const TemporaryFolder& scratch, const std::string& name, Arguments more) {
  successful(run_syncopate(small_run(scratch, name, std::move(more))));
  return summary_of(scratch / (name + ".jsonl")).at("weights_hash");
}

TEST(TrainProgram, LearnsASmallDataSet) {
  const TemporaryFolder scratch;
  const ProgramResult result =
      successful(run_syncopate(small_run(scratch, "m", {"--steps", "400", "--log-every", "20"})));
  const auto steps = metrics_lines(scratch / "m.jsonl", "step");
  ASSERT_EQ(steps.size(), 20U);
  EXPECT_LT(steps.back().at("loss"), 0.5 * steps.front().at("loss").get<double>());
  // Random guessing between four classes has an accuracy of 0.25.
  EXPECT_GT(summary_of(scratch / "m.jsonl").at("test_accuracy"), 0.5);
  EXPECT_TRUE(contains(result.out, "test accuracy"));
}

TEST(TrainProgram, WritesMetricsWithTheAgreedKeys) {
  const TemporaryFolder scratch;
  // Two epochs of 781 batches give three step lines, one for each 500 steps, and one line at the
  // end.
  successful(run_syncopate(small_run(scratch, "m", {"--epochs", "2", "--log-every", "500"})));
  const auto lines = metrics_lines(scratch / "m.jsonl");
  const auto evaluations = metrics_lines(scratch / "m.jsonl", "eval");
  const auto summary = summary_of(scratch / "m.jsonl");
  EXPECT_EQ(metrics_lines(scratch / "m.jsonl", "step").size(), 4U);
  ASSERT_EQ(evaluations.size(), 2U);
  const auto workers = metrics_lines(scratch / "m.jsonl", "worker");
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(workers.at(0).at("samples"), 2 * 781 * 64);
  EXPECT_NEAR(workers.at(0).at("compute_seconds").get<double>() +
                  workers.at(0).at("communication_exposed_seconds").get<double>() +
                  workers.at(0).at("input_wait_seconds").get<double>(),
              summary.at("seconds").get<double>(), 1e-9);
  EXPECT_EQ(lines.size(), 1U + 4U + 2U + 1U + 1U);
  EXPECT_EQ(lines.front().at("event"), "begin");
  for (const auto& line : lines) {
    EXPECT_EQ(line.at("began_at"), lines.front().at("began_at")) << line;
  }
  const auto steps = metrics_lines(scratch / "m.jsonl", "step");
  for (const char* key : {"step", "epoch", "loss", "accuracy", "learning_rate", "samples",
                          "seconds", "samples_per_second", "input_wait_fraction"}) {
    EXPECT_TRUE(steps.front().at(key).is_number()) << key;
  }
  for (const char* key : {"replicas", "steps", "samples", "seconds", "samples_per_second",
                          "train_loss", "test_accuracy", "test_loss", "staleness_mean",
                          "staleness_max", "input_wait_fraction", "peak_memory_bytes"}) {
    EXPECT_TRUE(summary.at(key).is_number()) << key;
  }
  EXPECT_EQ(summary.at("strategy"), "one-device");
  EXPECT_EQ(summary.at("model"), "mlp");
  EXPECT_EQ(summary.at("steps"), 2 * 781);
  EXPECT_EQ(summary.at("samples"), 2 * 781 * 64);
  EXPECT_DOUBLE_EQ(evaluations.at(0).at("epoch"), 1.0);
  // The test set of 10,000 samples is no multiple of the evaluation's batch size. The samples of
  // the incomplete last batch must count once.
  EXPECT_EQ(evaluations.at(1).at("samples"), 10000);
  EXPECT_EQ(evaluations.at(0).at("trained_samples"), 781 * 64);
  EXPECT_EQ(evaluations.at(1).at("trained_seconds"), summary.at("seconds"));
  EXPECT_DOUBLE_EQ(evaluations.at(1).at("test_accuracy"), summary.at("test_accuracy"));
  EXPECT_GT(summary.at("peak_memory_bytes"), 1 << 20);
}

TEST(TrainProgram, EvaluatesAtTheGivenStepInterval) {
  const TemporaryFolder scratch;
  successful(run_syncopate(small_run(scratch, "m", {"--steps", "70", "--eval-every-steps", "30"})));
  std::vector<std::int64_t> steps;
  for (const auto& line : metrics_lines(scratch / "m.jsonl", "eval"))
    steps.push_back(line.at("step"));
  EXPECT_EQ(steps, (std::vector<std::int64_t>{30, 60, 70}));
}

TEST(TrainProgram, EvaluatesNeverWithAnIntervalOfZero) {
  const TemporaryFolder scratch;
  for (const Arguments& strategy :
       {Arguments{}, as_words("--strategy central-storage --consistency async --replicas 2")}) {
    Arguments more = as_words("--epochs 1 --eval-every 0", strategy);
    const ProgramResult result = successful(run_syncopate(small_run(scratch, "m", more)));
    EXPECT_TRUE(metrics_lines(scratch / "m.jsonl", "eval").empty());
    EXPECT_TRUE(summary_of(scratch / "m.jsonl").at("test_accuracy").is_null());
    EXPECT_FALSE(contains(result.out, "test accuracy"));
    EXPECT_TRUE(contains(result.out, "weights hash"));
  }
}

TEST(TrainProgram, ContinuesWhenItsOutputIsNotRead) {
  const TemporaryFolder scratch;
  // stderr is a pipe without a reader: opening the pipe waits for a reader, which exits at once.
  Arguments command{"/bin/sh", "-c",
                    "mkfifo \"$1\"; : <\"$1\" & exec 2>\"$1\"; wait; shift; exec \"$@\"", "sh",
                    scratch / "notes"};
  for (const std::string& word : syncopate_command(small_run(scratch, "m", {"--steps", "5"}))) {
    command.push_back(word);
  }
  const ProgramResult result = run_program(command);
  EXPECT_EQ(result.exit_code, 0) << "ended by signal " << result.ended_by_signal;
  EXPECT_EQ(summary_of(scratch / "m.jsonl").at("steps"), 5);
}

TEST(TrainProgram, GivesTheSameBitsTwiceAndOtherBitsForAnotherSeed) {
  const TemporaryFolder scratch;
  const Arguments run{"--steps", "200", "--deterministic", "--threads", "2"};
  const std::string first = weights_hash(scratch, "a", run);
  EXPECT_EQ(weights_hash(scratch, "b", run), first);
  EXPECT_NE(weights_hash(scratch, "c", as_words("--steps 200 --threads 2 --seed 2")), first);
}

TEST(TrainProgram, GivesTheSameBitsForAnyNumberOfInputThreads) {
  const TemporaryFolder scratch;
  const std::string one = weights_hash(scratch, "a", {"--steps", "200", "--input-threads", "1"});
  EXPECT_EQ(weights_hash(scratch, "b", {"--steps", "200", "--input-threads", "2"}), one);
  EXPECT_EQ(weights_hash(scratch, "c", as_words("--steps 200 --input-threads 3 --prefetch 7")),
            one);
}

TEST(TrainProgram, FollowsTheScheduleFromWarmUpToTheEnd) {
  const TemporaryFolder scratch;
  successful(run_syncopate(small_run(scratch, "m",
                                     as_words("--steps 100 --log-every 1 --learning-rate 0.01 "
                                              "--lr-schedule cosine --warmup-epochs 0.0128"))));
  const auto steps = metrics_lines(scratch / "m.jsonl", "step");
  ASSERT_EQ(steps.size(), 100U);
  EXPECT_NEAR(steps[0].at("learning_rate"), 0.0001,
              1e-5);  // 1 % of the peak rate: first of ten warm-up steps
  EXPECT_NEAR(steps[10].at("learning_rate"), 0.01, 5e-4);
  EXPECT_LT(steps[99].at("learning_rate"), 1e-4);
}

TEST(TrainProgram, TrainsWithEveryOptimizer) {
  const TemporaryFolder scratch;
  for (const char* optimizer : {"sgd", "momentum", "adam", "adamw"}) {
    const std::string name = optimizer;
    successful(run_syncopate(small_run(
        scratch, name,
        as_words("--steps 300 --log-every 50 --optimizer", name, "--weight-decay 1e-4"))));
    const auto steps = metrics_lines(scratch / (name + ".jsonl"), "step");
    EXPECT_LT(steps.back().at("loss"), steps.front().at("loss")) << name;
  }
}

}  // namespace
}  // namespace syncopate::test
