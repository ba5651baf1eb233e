// Tests of asynchronous jobs under the virtual clock that push displacements.
#include <gtest/gtest.h>

#include <cstdint>

#include "models/base/errors.h"
#include "tests/bench/virtual_clock/virtual_case.h"

namespace syncopate::bench {
namespace {

// Returns a job. Its servers make an outer step of rate 1 with each displacement.
VirtualCase job(int workers, std::int64_t sync_every, std::int64_t samples) {
  VirtualCase run("parameter-server", samples);
  run.options.strategy.consistency.consistency = ps::Consistency::kAsync;
  run.options.strategy.local.push = PushKind::kDisplacement;
  run.options.strategy.local.sync_every = sync_every;
  run.options.strategy.local.outer_learning_rate = 1.0;
  run.options.strategy.optimizer.name = "momentum";
  run.options.schedule.learning_rate = 0.01;
  run.workers = workers;
  return run;
}

// 32 steps: 6 rounds of 5 and one of 2, because no batch is left for a whole round. With one
// worker, an outer step of rate 1 gives the values of the worker, up to the rounding of a
// difference.
TEST(VirtualDisplacements, OfOneWorkerTrainAsOneDevice) {
  VirtualCase run = job(1, 5, 256);
  run.options.loop.eval_every_steps = 8;
  const Summary found = run.train_virtually();
  const TrainOutcome expected = run.train_in_real_time("one-device", 1);
  EXPECT_EQ(found.steps, 32);
  EXPECT_NEAR(found.test.loss, expected.test->loss, 1e-5);  // 1e-5: f32 differences, as above
  EXPECT_NEAR(found.train_loss, expected.train_loss, 1e-5);
}

// An answer is needed in the first step of a round only.
TEST(VirtualDisplacements, SendTheBytesOfAStepOncePerRound) {
  VirtualCase run = job(1, 1, 256);
  run.train_virtually();
  const std::int64_t bytes = run.lines.workers.at(0).bytes_sent.value();
  run = job(1, 4, 256);
  run.train_virtually();
  EXPECT_EQ(run.lines.workers.at(0).steps, 32);
  EXPECT_EQ(run.lines.workers.at(0).bytes_sent, bytes / 4);
}

// Staleness counts displacements: each of the 3 other workers pushes one in a round.
TEST(VirtualDisplacements, AreAsStaleAsThereAreOthers) {
  VirtualCase run = job(4, 4, 8192);
  run.options.strategy.local.outer_learning_rate = 0.25;
  const Summary summary = run.train_virtually();
  EXPECT_EQ(summary.staleness_max, 3);
  EXPECT_NEAR(summary.staleness_mean, 3.0, 0.1);
  EXPECT_EQ(summary.samples, 8192);
}

// Returns a job whose servers merge the displacements of `quorum` workers.
VirtualCase merging_job(int workers, std::int64_t sync_every, std::int64_t samples, int quorum,
                        double grace) {
  VirtualCase run = job(workers, sync_every, samples);
  run.options.strategy.consistency = {
      .consistency = ps::Consistency::kQuorum, .quorum = quorum, .grace = grace};
  run.options.strategy.local.outer = "diloco";
  run.options.strategy.local.outer_learning_rate = {};
  return run;
}

// Steps take equal times, so every worker gets the samples of its share in local-sgd. 0: all
// workers.
TEST(VirtualDisplacements, OfAllWorkersAreSynchronousDilocoBitForBit) {
  VirtualCase synchronous("local-sgd", 8L * 3 * 4 * 5);
  synchronous.workers = 3;
  synchronous.options.strategy.local = {.sync_every = 4, .outer = "diloco"};
  synchronous.options.strategy.optimizer.name = "momentum";
  synchronous.options.schedule.learning_rate = 0.01;
  const std::string expected = synchronous.train_virtually().weights_hash;
  for (const int quorum : {0, 3, 1}) {
    constexpr double kForEver = 3600.0;
    VirtualCase run = merging_job(3, 4, 8L * 3 * 4 * 5, quorum, quorum == 1 ? kForEver : 0.0);
    EXPECT_EQ(run.train_virtually().weights_hash, expected) << quorum;
  }
}

// Worker 0 pushes after 10 ms and waits 5 ms for the others. Worker 1 needs 1 s for a step.
TEST(VirtualDisplacements, WaitForTheGraceOnly) {
  VirtualCase run = merging_job(2, 1, 8L * 512, 1, 0.005);
  run.faults.slow = {{.worker = 1, .factor = 100.0}};
  run.options.loop.max_seconds = 0.9;
  const Summary summary = run.train_virtually();
  EXPECT_EQ(run.lines.workers.at(0).steps, 60) << "of 15 ms";
  EXPECT_EQ(run.lines.workers.at(1).steps, 1) << "it is in the last merge";
  EXPECT_EQ(summary.steps, 61);
  run.options.strategy.consistency.quorum = 2;
  run.options.loop.max_seconds = 2.5;
  run.train_virtually();
  EXPECT_EQ(run.lines.workers.at(0).steps, 3);
  EXPECT_EQ(run.lines.workers.at(1).steps, 3);
}

TEST(VirtualDisplacements, RefuseAQuorumOfMoreWorkersThanThereAre) {
  VirtualCase run = merging_job(2, 2, 256, 3, 0.0);
  EXPECT_THROW(run.train_virtually(), UsageError);
}

// At the end of the data, every worker has a part of a round.
TEST(VirtualDisplacements, TrainEachSampleOnceAlsoWithKills) {
  for (const std::int64_t sync_every : {3, 100}) {
    for (int tenth = 0; tenth < 30; ++tenth) {
      VirtualCase run = tenth < 10   ? job(3, sync_every, 512)
                        : tenth < 20 ? merging_job(3, sync_every, 512, 2, 0.005)
                                     : merging_job(3, sync_every, 512, 0, 0.0);
      run.faults.service_time.kind = ServiceTimeKind::kExponential;
      run.faults.link = {.delay_seconds = 0.001, .bytes_per_second = 100e6};
      run.faults.kills = {
          {.worker = 1, .at_seconds = 0.05 + 0.003 * (tenth % 10), .restart_seconds = 0.02}};
      const Summary summary = run.train_virtually();
      EXPECT_EQ(summary.samples, 512) << sync_every << " " << tenth;
      EXPECT_EQ(summary.steps, 64) << sync_every << " " << tenth;
    }
  }
}

TEST(VirtualDisplacements, EndAtTheTimeLimitWithAPartOfARound) {
  VirtualCase run = job(2, 100, 4096);
  run.options.loop.total_epochs = 1000;
  run.options.loop.max_seconds = 0.095;
  const Summary summary = run.train_virtually();
  EXPECT_EQ(summary.steps, 2 * 10) << "10 steps of 10 ms of each worker";
}

TEST(VirtualDisplacements, AreRefusedWithARuleForStaleGradients) {
  VirtualCase run = job(2, 2, 256);
  run.options.strategy.consistency.staleness_rule = ps::StalenessRule::kRingmaster;
  EXPECT_THROW(run.train_virtually(), UsageError);
}

}  // namespace
}  // namespace syncopate::bench
