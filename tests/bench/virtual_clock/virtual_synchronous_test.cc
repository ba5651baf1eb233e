// Tests that synchronous jobs under the virtual clock give the bits of the real strategy.
#include <gtest/gtest.h>

#include <vector>

#include "models/base/errors.h"
#include "tests/bench/virtual_clock/virtual_case.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

TEST(VirtualSynchronousJob, WithOneWorkerEqualsOneDeviceBitForBit) {
  for (const char* optimizer : {"sgd", "momentum", "adam"}) {
    for (const char* strategy : {"one-device", "mirrored", "central-storage", "parameter-server"}) {
      VirtualCase run(strategy, 128);
      run.options.strategy.optimizer.name = optimizer;
      run.options.schedule.learning_rate = 0.01;
      expect_the_bits_of(run, "one-device", 1);
    }
  }
}

TEST(VirtualSynchronousJob, WithSeveralWorkersEqualsMirroredBitForBit) {
  for (const int replicas : {2, 3}) {
    for (const char* strategy :
         {"mirrored", "multi-worker-mirrored", "central-storage", "parameter-server"}) {
      VirtualCase run(strategy, 160);
      expect_the_bits_of(run, "mirrored", replicas);
    }
  }
}

TEST(VirtualSynchronousJob, OfStagesEqualsARealPipelineBitForBit) {
  for (const char* model : {"mlp", "resnet20"}) {
    VirtualCase run("pipeline", 96, model);
    run.options.strategy.stages = 2;
    run.options.strategy.micro_batches = 3;
    expect_the_bits_of(run, "pipeline", 1);
  }
}

// 96 samples are 4 steps of 3 micro-batches; a whole network would compute 10 ms on each.
TEST(VirtualSynchronousJob, AccountsForTheTimeOfItsStages) {
  VirtualCase run("pipeline", 96, "resnet20");
  run.options.strategy.micro_batches = 3;
  run.workers = 3;
  const Summary summary = run.train_virtually();
  EXPECT_EQ(summary.replicas, 1);
  EXPECT_EQ(summary.steps, 4);
  ASSERT_EQ(run.lines.workers.size(), 3U);
  double computed = 0.0;
  for (const WorkerMetrics& stage : run.lines.workers) {
    EXPECT_NEAR(stage.compute_seconds + *stage.peers_wait_seconds, summary.seconds, 1e-9);
    EXPECT_EQ(stage.samples, 96);
    computed += stage.compute_seconds;
  }
  EXPECT_NEAR(computed, 4 * 3 * 0.01, 1e-6);
  // Stages of about equal work: 3 of 5 times are computation.
  EXPECT_NEAR(summary.seconds, 4 * 5 * 0.01 / 3, 0.1 * summary.seconds);
}

TEST(VirtualSynchronousJob, SplitsABatchIntoTheUnevenSharesOfARealJob) {
  VirtualCase run("mirrored", 100);
  run.options.global_batch_size = 10;  // The three workers get 4, 4 and 2 samples.
  expect_the_bits_of(run, "mirrored", 3);
}

TEST(VirtualSynchronousJob, EvaluatesTheSplitsOfARealJob) {
  VirtualCase run("mirrored", 100, "mlp", "val=0.3");
  expect_the_bits_of(run, "mirrored", 2);
}

TEST(VirtualSynchronousJob, AveragesRunningStatisticsLikeARealJob) {
  VirtualCase run("parameter-server", 48, "resnet20");
  run.options.strategy.batch_norm = BatchNormStatistics::kLocal;
  expect_the_bits_of(run, "mirrored", 2);
}

TEST(VirtualSynchronousJob, FollowsTheScheduleOverEpochsLikeARealJob) {
  VirtualCase run("mirrored", 64);
  run.options.schedule.kind = ScheduleKind::kCosine;
  run.options.loop.total_epochs = 3;
  run.options.learning_rate_scale = LearningRateScale::kLinear;
  expect_the_bits_of(run, "mirrored", 2);
}

TEST(VirtualSynchronousJob, HasTheSameBitsWithAnyNumberOfServers) {
  VirtualCase run("parameter-server", 128);
  run.workers = 2;
  const std::string expected = run.train_virtually().weights_hash;
  run.options.strategy.parameter_server.partition = ps::parse_partition("fixed:3", "--partition");
  run.servers = 3;
  EXPECT_EQ(run.train_virtually().weights_hash, expected);
}

// The job has 128 samples and 2 workers with batches of 8, so it takes 8 steps of 10 ms.
TEST(VirtualSynchronousJob, AccountsForTheTimeOfItsWorkers) {
  VirtualCase run("mirrored", 128);
  run.workers = 2;
  run.faults.slow = {{.worker = 1, .factor = 3.0}};
  const Summary summary = run.train_virtually();
  EXPECT_DOUBLE_EQ(summary.seconds, 0.24);
  EXPECT_DOUBLE_EQ(summary.samples_per_second, 128 / 0.24);
  ASSERT_EQ(run.lines.workers.size(), 2U);
  EXPECT_DOUBLE_EQ(run.lines.workers[0].compute_seconds, 0.08);
  EXPECT_DOUBLE_EQ(*run.lines.workers[0].peers_wait_seconds, 0.16);
  EXPECT_DOUBLE_EQ(run.lines.workers[1].compute_seconds, 0.24);
  EXPECT_DOUBLE_EQ(*run.lines.workers[1].peers_wait_seconds, 0.0);
  EXPECT_EQ(run.lines.workers[0].samples, 64);
  EXPECT_EQ(run.lines.workers[0].steps, 8);
  ASSERT_EQ(run.lines.evaluations.size(), 1U);
  EXPECT_EQ(run.lines.evaluations[0].trained_samples, 128);
  EXPECT_DOUBLE_EQ(run.lines.evaluations[0].trained_seconds, 0.24);
  EXPECT_EQ(run.progress.back(), 1.0);
  EXPECT_EQ(run.lines.summaries.size(), 1U);
}

TEST(VirtualSynchronousJob, WaitsForAKilledWorkerAndHasTheSameResult) {
  VirtualCase run("mirrored", 128);
  run.workers = 2;
  const Summary undisturbed = run.train_virtually();
  run.faults.kills = {{.worker = 1, .at_seconds = 0.025, .restart_seconds = 1.0}};
  run.options.loop.eval_every_steps = 2;
  const Summary found = run.train_virtually();
  EXPECT_EQ(found.weights_hash, undisturbed.weights_hash);
  // The third step began at 20 ms, is interrupted by the kill, and begins again at 1.025 s.
  EXPECT_DOUBLE_EQ(found.seconds, undisturbed.seconds + 1.005);
}

TEST(VirtualSynchronousJob, RepeatsTheStepsSinceTheLastCheckpoint) {
  for (const char* strategy : {"one-device", "mirrored", "multi-worker-mirrored"}) {
    VirtualCase run(strategy, 64);  // One worker takes 8 steps of 10 ms.
    run.options.loop.eval_every_steps = 3;
    run.faults.kills = {{.worker = 0, .at_seconds = 0.055, .restart_seconds = 0.1}};
    const Summary found = run.train_virtually();
    // The kill loses steps four to six, and the fourth step begins again at 155 ms.
    EXPECT_DOUBLE_EQ(found.seconds, 0.155 + 0.05) << strategy;
    EXPECT_DOUBLE_EQ(run.lines.evaluations.at(0).trained_seconds, 0.03) << strategy;
    EXPECT_DOUBLE_EQ(run.lines.evaluations.at(1).trained_seconds, 0.155 + 0.03) << strategy;
    EXPECT_EQ(run.lines.workers.at(0).steps, 8) << strategy;
  }
}

TEST(VirtualSynchronousJob, MayBeKilledAgainWhileItRepeatsSteps) {
  VirtualCase run("one-device", 64);
  run.options.loop.eval_every_steps = 4;
  run.faults.kills = {{.worker = 0, .at_seconds = 0.035, .restart_seconds = 0.1},
                      {.worker = 0, .at_seconds = 0.150, .restart_seconds = 0.1}};
  // After the two kills the first step begins again at 135 ms and at 250 ms.
  EXPECT_DOUBLE_EQ(run.train_virtually().seconds, 0.25 + 0.08);
}

TEST(VirtualSynchronousJob, EndsIfAKilledWorkerIsNotRestarted) {
  VirtualCase run("mirrored", 128);
  run.workers = 2;
  run.faults.kills = {{.worker = 1, .at_seconds = 0.025}};
  EXPECT_TRUE(contains(message_of<PeerError>([&] { run.train_virtually(); }),
                       "worker 1 was killed at 0.025 s, in step 3"));
}

TEST(VirtualSynchronousJob, RefusesContradictoryOptions) {
  VirtualCase run("mirrored", 64);
  run.faults.joins = {{.worker = 1, .at_seconds = 1.0}};
  EXPECT_THROW(run.train_virtually(), UsageError);
  run.faults.joins.clear();
  run.faults.service_time = {};
  EXPECT_THROW(run.train_virtually(), UsageError);
  VirtualCase alone("one-device", 64);
  alone.workers = 2;
  EXPECT_THROW(alone.train_virtually(), UsageError);
}

TEST(VirtualSynchronousJob, EndsAtItsTimeLimit) {
  VirtualCase run("mirrored", 4096);
  run.workers = 2;
  run.options.loop.max_seconds = 0.1;  // ten steps take this time
  const Summary summary = run.train_virtually();
  EXPECT_EQ(summary.steps, 10);
  EXPECT_EQ(run.lines.evaluations.back().step, 10);
}

// Every line of the second cluster is that of a run of its own, times included.
TEST(VirtualSynchronousJob, IsTrainedOnceForSeveralClusters) {
  for (const char* strategy : {"one-device", "multi-worker-mirrored", "parameter-server"}) {
    VirtualCase run(strategy, 128);
    run.workers = std::string(strategy) == "one-device" ? 1 : 4;
    run.servers = 1;
    run.options.loop.eval_every_steps = 2;
    FaultInjection slow = run.faults;
    slow.slow.push_back({.worker = 0, .factor = 4.0});
    slow.link = {.delay_seconds = 0.001, .bytes_per_second = 1e8};
    const std::vector<RecordedLines> others = run.train_in_clusters({slow});
    const RecordedLines own = run.lines;
    run.train_virtually();
    EXPECT_EQ(own.summaries.at(0).seconds, run.lines.summaries.at(0).seconds);
    run.faults = slow;
    run.train_virtually();
    const RecordedLines& alone = run.lines;
    const RecordedLines& shared = others.front();
    EXPECT_EQ(shared.summaries.at(0).weights_hash, alone.summaries.at(0).weights_hash);
    EXPECT_EQ(shared.summaries.at(0).seconds, alone.summaries.at(0).seconds);
    EXPECT_NE(shared.summaries.at(0).seconds, own.summaries.at(0).seconds);
    EXPECT_EQ(shared.summaries.at(0).train_loss, alone.summaries.at(0).train_loss);
    ASSERT_EQ(shared.steps.size(), alone.steps.size());
    for (std::size_t i = 0; i < alone.steps.size(); ++i) {
      EXPECT_EQ(shared.steps[i].seconds, alone.steps[i].seconds);
      EXPECT_EQ(shared.steps[i].loss, alone.steps[i].loss);
      EXPECT_EQ(shared.steps[i].compute_seconds, alone.steps[i].compute_seconds);
    }
    ASSERT_EQ(shared.evaluations.size(), alone.evaluations.size());
    for (std::size_t i = 0; i < alone.evaluations.size(); ++i) {
      EXPECT_EQ(shared.evaluations[i].result.loss, alone.evaluations[i].result.loss);
      EXPECT_EQ(shared.evaluations[i].trained_seconds, alone.evaluations[i].trained_seconds);
    }
    ASSERT_EQ(shared.workers.size(), alone.workers.size());
    for (std::size_t i = 0; i < alone.workers.size(); ++i) {
      EXPECT_EQ(shared.workers[i].seconds, alone.workers[i].seconds);
      EXPECT_EQ(shared.workers[i].bytes_sent, alone.workers[i].bytes_sent);
    }
  }
}

}  // namespace
}  // namespace syncopate::bench
