// Tests that asynchronous jobs under the virtual clock follow the rules for single stale gradients
// as real jobs do.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "models/base/errors.h"
#include "ps/shard/stale_gradients.h"
#include "tests/bench/virtual_clock/virtual_case.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

// Returns a job with exponential step times and the optimizer momentum.
VirtualCase job(const std::string& rule, int workers, std::int64_t samples,
                const std::string& model = "mlp") {
  VirtualCase run("parameter-server", samples, model);
  run.options.strategy.consistency.consistency = ps::Consistency::kAsync;
  ps::set_staleness_rule(run.options.strategy.consistency, rule, "rule");
  run.options.strategy.optimizer.name = "momentum";
  run.options.schedule.learning_rate = 0.01;
  run.options.loop.eval_every_steps = 4;
  run.faults.service_time.kind = ServiceTimeKind::kExponential;
  run.workers = workers;
  return run;
}

// The sums over the workers of the last run.
struct WorkerSums {
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  ps::DroppedSteps dropped;
};

WorkerSums sums_of(const VirtualCase& run) {
  WorkerSums sums;
  for (const WorkerMetrics& worker : run.lines.workers) {
    sums.steps += worker.steps;
    sums.samples += worker.samples;
    sums.dropped.whole += worker.dropped_steps.value_or(ps::DroppedSteps{}).whole;
    sums.dropped.in_part += worker.dropped_steps.value_or(ps::DroppedSteps{}).in_part;
  }
  return sums;
}

TEST(VirtualStaleRules, WithOneWorkerEqualOneDeviceBitForBit) {
  for (const char* rule : {"ringmaster:1", "rennala:1", "ordered-momentum"}) {
    VirtualCase run = job(rule, 1, 100);
    const Summary found = run.train_virtually();
    EXPECT_EQ(found.weights_hash, run.train_in_real_time("one-device", 1).weights_hash) << rule;
  }
}

// Expects equal weights and times.
void expect_equal(const std::string& rule, const std::string& other) {
  const Summary found = job(rule, 5, 1024).train_virtually();
  const Summary expected = job(other, 5, 1024).train_virtually();
  EXPECT_EQ(found.weights_hash, expected.weights_hash) << rule << ", " << other;
  EXPECT_EQ(found.seconds, expected.seconds) << rule << ", " << other;
}

TEST(VirtualStaleRules, EqualTheirBaseMethods) {
  expect_equal("ringmaster:2147483648", "none");
  expect_equal("ringmaster:1", "rennala:1");
}

TEST(VirtualStaleRules, TrainTheSamplesOfADroppedGradientAgain) {
  VirtualCase run = job("ringmaster:2", 4, 1024);
  const Summary summary = run.train_virtually();
  EXPECT_EQ(summary.samples, 1024);
  EXPECT_EQ(summary.steps, 1024 / 8);
  EXPECT_EQ(summary.staleness_max, 1);
  const WorkerSums sums = sums_of(run);
  EXPECT_GT(sums.dropped.whole, 20);
  EXPECT_EQ(sums.samples, 1024 + sums.dropped.whole * 8);
  EXPECT_EQ(sums.dropped.in_part, 0) << "the network has one bucket";
}

// The gradients of a step reach each of 8 buckets at another time.
TEST(VirtualStaleRules, CountStepsThatAreDroppedInPart) {
  VirtualCase run = job("ringmaster:2", 4, 1024, "mnist-cnn");
  run.servers = 2;
  run.options.strategy.bucket_bytes = 32 << 10;
  run.faults.link = {.delay_seconds = 0.001, .bytes_per_second = 100e6};
  EXPECT_EQ(run.train_virtually().samples, 1024);
  const WorkerSums sums = sums_of(run);
  EXPECT_GT(sums.dropped.in_part, 0);
  EXPECT_GT(sums.dropped.whole, 0);
  EXPECT_LT(sums.dropped.whole + sums.dropped.in_part, sums.steps);
}

TEST(VirtualStaleRules, MakeAnUpdateOfCollectedGradients) {
  VirtualCase run = job("rennala:3", 4, 1024);
  const Summary summary = run.train_virtually();
  EXPECT_EQ(summary.steps, 128 / 3);
  EXPECT_EQ(summary.samples, 126 * 8) << "two gradients are too few for an update";
  EXPECT_EQ(summary.staleness_max, 0);
  EXPECT_EQ(sums_of(run).samples, 126 * 8 + sums_of(run).dropped.whole * 8);
  run.options.loop.total_steps = 5;
  EXPECT_EQ(run.train_virtually().samples, 5 * 3 * 8) << "--steps counts updates";
  EXPECT_TRUE(
      contains(message_of<UsageError>([] { job("rennala:129", 4, 1024).train_virtually(); }),
               "the whole run has 128 batches, so no update would be made"));
}

// The mean of the gradients of two workers with the same values is one gradient of their samples.
TEST(VirtualStaleRules, TakeTheMeanOfCollectedGradients) {
  VirtualCase collected = job("rennala:2", 1, 256);
  VirtualCase summed("mirrored", 256);
  summed.options.strategy.optimizer.name = "momentum";
  summed.options.schedule.learning_rate = 0.01;
  summed.options.loop.eval_every_steps = 4;
  summed.workers = 2;
  collected.train_virtually();
  summed.train_virtually();
  ASSERT_EQ(collected.lines.evaluations.size(), summed.lines.evaluations.size());
  for (std::size_t i = 0; i < summed.lines.evaluations.size(); ++i) {
    // 1e-5: f32 sums in another order.
    EXPECT_NEAR(collected.lines.evaluations[i].result.loss, summed.lines.evaluations[i].result.loss,
                1e-5);
  }
}

TEST(VirtualStaleRules, LoseNoSampleOfAKilledWorker) {
  for (const char* rule : {"ringmaster:2", "rennala:4", "ordered-momentum"}) {
    for (int tenth = 0; tenth < 10; ++tenth) {
      VirtualCase run = job(rule, 3, 256);
      run.faults.kills = {
          {.worker = 1, .at_seconds = 0.03 + 0.002 * tenth, .restart_seconds = 0.02}};
      EXPECT_EQ(run.train_virtually().samples, 256) << rule << " " << tenth;
    }
  }
}

TEST(VirtualStaleRules, RefuseAnOptimizerThatDoesNotFit) {
  VirtualCase run = job("ordered-momentum", 2, 256);
  run.options.strategy.optimizer.name = "sgd";
  EXPECT_THROW(run.train_virtually(), UsageError);
}

}  // namespace
}  // namespace syncopate::bench
