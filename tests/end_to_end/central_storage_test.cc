// Tests central storage with asynchronous replicas: threads of one process that share one copy of
// the variables.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

const Arguments kSmall = as_words(
    "--model mlp --data synthetic:1x8x8:4:640 --threads 1 --optimizer adam --seed 7 --no-progress "
    "--batch-size-per-replica 32");

Arguments central(int replicas, const Arguments& consistency) {
  return as_words("train --strategy central-storage --replicas", std::to_string(replicas),
                  "--share-devices") +
         consistency;
}

class CentralStorage : public testing::TestWithParam<Arguments> {
 protected:
  ProgramResult run(const Arguments& arguments) {
    return run_syncopate(arguments + Arguments{"--metrics", metrics_});
  }
  nlohmann::json summary() const { return summary_of(metrics_); }

  const TemporaryFolder scratch_;
  const std::string metrics_ = scratch_ / "m.jsonl";
};

TEST_P(CentralStorage, OfOneReplicaIsOneDeviceBitForBit) {
  const Arguments what = kSmall + Arguments{"--epochs", "2"};
  ASSERT_EQ(run(Arguments{"train"} + what).exit_code, 0);
  const auto alone = summary();
  successful(run(central(1, GetParam()) + what));
  EXPECT_EQ(summary().at("weights_hash"), alone.at("weights_hash"));
  EXPECT_EQ(summary().at("test_loss"), alone.at("test_loss"));
}

TEST_P(CentralStorage, LeavesACheckpointThatMirroredResumes) {
  const Arguments what = kSmall + Arguments{"--checkpoint-dir", scratch_ / "ck"};
  successful(run(central(3, GetParam()) + what + Arguments{"--epochs", "2"}));
  EXPECT_EQ(summary().at("samples"), 2 * 640);
  EXPECT_EQ(summary().at("replicas"), 3);
  const ProgramResult second = successful(
      run(as_words("train --strategy mirrored --replicas 2 --share-devices --resume --epochs 3") +
          what));
  EXPECT_TRUE(contains(second.err, "resumed from"));
  EXPECT_EQ(summary().at("samples"), 3 * 640);
}

INSTANTIATE_TEST_SUITE_P(
    Under, CentralStorage,
    testing::Values(Arguments{"--consistency", "async"}, Arguments{"--consistency", "ssp"},
                    Arguments{"--consistency", "ssp", "--max-staleness", "2"}));

TEST(AsynchronousCentralStorage, StopsOnASignalWithACheckpoint) {
  const TemporaryFolder scratch;
  RunningProgram program(
      syncopate_command(central(3, {"--consistency", "async"}) + kSmall +
                        as_words("--epochs 100000 --log-every 1 --metrics", scratch / "m.jsonl",
                                 "--checkpoint-dir", scratch / "ck")));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"event\":\"step\"", 5));
  program.send(SIGTERM);
  const ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_FALSE(names_in(scratch / "ck").empty());
}

TEST(AsynchronousCentralStorage, RequiresMoreReplicasThanBackups) {
  expect_failure(
      run_syncopate(central(2, {"--consistency", "sync", "--backup-workers", "2"}) + kSmall), 2,
      {"--backup-workers 2"});
}

TEST(AsynchronousCentralStorage, OfFourReplicasLearnsAsWellAsOneDevice) {
  if (SYNCOPATE_SANITIZED)
    GTEST_SKIP() << "too slow under a sanitizer; the optimised build runs it";
  const TemporaryFolder scratch;
  const std::string metrics = scratch / "m.jsonl";
  successful(run_syncopate(
      central(4, {"--consistency", "async"}) +
          Arguments{"--model", "mnist-cnn", "--data", "digits", "--optimizer", "adam",
                    "--learning-rate", "0.001", "--batch-size-per-replica", "64", "--epochs", "3",
                    // The learning rate falls to zero, because a replica that the scheduler delayed
                    // pushes an old gradient. At the full rate such a gradient would lower the
                    // accuracy if it were the last.
                    "--lr-schedule", "cosine", "--eval-every", "9", "--no-progress", "--cache-dir",
                    SYNCOPATE_TEST_CACHE, "--metrics", metrics},
      std::chrono::seconds(300)));
  const auto summary = summary_of(metrics);
  EXPECT_GE(summary.at("test_accuracy"), 0.98);
  // The staleness is near 3: between two pushes of one replica, each of the three others pushes
  // once on average. (A replica that evaluates in between pulls once more.)
  EXPECT_NEAR(summary.at("staleness_mean"), 3.0, 0.05);
}

}  // namespace
}  // namespace syncopate::test
