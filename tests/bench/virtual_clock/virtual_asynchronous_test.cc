// Tests that asynchronous jobs under the virtual clock follow theory and the rules of real jobs.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "models/base/errors.h"
#include "tests/bench/virtual_clock/virtual_case.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

VirtualCase job(int workers, ps::ConsistencyOptions consistency, std::int64_t samples) {
  VirtualCase run("parameter-server", samples);
  run.options.strategy.consistency = consistency;
  run.options.schedule.learning_rate = 0.01;
  run.workers = workers;
  return run;
}

constexpr ps::ConsistencyOptions kAsync{.consistency = ps::Consistency::kAsync};
constexpr ps::ConsistencyOptions kSsp2{.consistency = ps::Consistency::kSsp, .max_staleness = 2};

void draw_exponential_times(VirtualCase& run) {
  run.faults.service_time.kind = ServiceTimeKind::kExponential;
}

TEST(VirtualAsynchronousJob, WithOneWorkerEqualsOneDeviceBitForBit) {
  for (const ps::ConsistencyOptions& consistency : {kAsync, kSsp2}) {
    for (const char* optimizer : {"sgd", "adam"}) {
      VirtualCase run = job(1, consistency, 100);
      run.options.strategy.optimizer.name = optimizer;
      run.options.loop.total_epochs = 2;
      const Summary found = run.train_virtually();
      const std::vector<EvalMetrics> evaluations = run.lines.evaluations;
      const TrainOutcome expected = run.train_in_real_time("one-device", 1);
      EXPECT_EQ(found.weights_hash, expected.weights_hash);
      EXPECT_EQ(found.steps, expected.progress.at.step);
      EXPECT_EQ(found.train_loss, expected.train_loss);
      ASSERT_EQ(evaluations.size(), 2U);
      EXPECT_EQ(evaluations[0].result.loss, run.lines.evaluations[0].result.loss);
      EXPECT_EQ(evaluations[0].trained_samples, run.lines.evaluations[0].trained_samples);
    }
  }
}

TEST(VirtualAsynchronousJob, EvaluatesTheSplitsOfARealJob) {
  VirtualCase run("parameter-server", 100, "mlp", "val=0.3");
  run.options.strategy.consistency = kAsync;
  const Summary found = run.train_virtually();
  ASSERT_EQ(run.lines.evaluations.size(), 1U);
  EXPECT_TRUE(run.lines.evaluations[0].on_validation);
  const TrainOutcome expected = run.train_in_real_time("one-device", 1);
  EXPECT_EQ(found.validation->loss, expected.validation->loss);
  EXPECT_EQ(found.test.loss, expected.test->loss);
}

TEST(VirtualAsynchronousJob, IsRepeatable) {
  VirtualCase run = job(5, kSsp2, 512);
  draw_exponential_times(run);
  run.faults.link = {.delay_seconds = 0.001, .bytes_per_second = 1e8};
  run.faults.kills = {{.worker = 2, .at_seconds = 0.05, .restart_seconds = 0.03}};
  run.servers = 2;
  run.options.strategy.parameter_server.partition = ps::parse_partition("fixed:2", "--partition");
  const Summary first = run.train_virtually();
  const RecordedLines lines = run.lines;
  const Summary second = run.train_virtually();
  EXPECT_EQ(first.weights_hash, second.weights_hash);
  EXPECT_EQ(first.seconds, second.seconds);
  EXPECT_EQ(first.staleness_mean, second.staleness_mean);
  ASSERT_EQ(lines.steps.size(), run.lines.steps.size());
  for (std::size_t i = 0; i < lines.steps.size(); ++i) {
    EXPECT_EQ(lines.steps[i].loss, run.lines.steps[i].loss);
    EXPECT_EQ(lines.steps[i].seconds, run.lines.steps[i].seconds);
  }
}

// The staleness is n - 1 with n workers, but the first gradient of each worker has a mean staleness
// of (n - 1) / 2.
TEST(VirtualAsynchronousJob, HasAStalenessOfTheNumberOfOtherWorkers) {
  for (const ServiceTimeKind kind : {ServiceTimeKind::kConstant, ServiceTimeKind::kExponential}) {
    VirtualCase run = job(4, kAsync, 4096);
    run.faults.service_time.kind = kind;
    const Summary summary = run.train_virtually();
    EXPECT_NEAR(summary.staleness_mean, 3.0, 0.05);
    ASSERT_EQ(summary.staleness.size(), 4U);
    if (kind == ServiceTimeKind::kConstant) {
      EXPECT_EQ(summary.staleness_max, 3) << "equal workers take turns";
    } else {
      EXPECT_GT(summary.staleness_max, 6);
    }
  }
}

// Source: Dutta et al. 2018, "Slow and stale gradients can win the race", section 3: with
// exponential times a synchronous step of 8 workers takes H_8 = 2.72 times as long as 8
// asynchronous updates.
TEST(VirtualAsynchronousJob, IsFasterThanASynchronousJobByTheHarmonicNumber) {
  constexpr double kHarmonic8 = 2.717857;
  VirtualCase async = job(8, kAsync, 16384);
  draw_exponential_times(async);
  VirtualCase sync = job(8, {}, 16384);
  draw_exponential_times(sync);
  const double ratio = sync.train_virtually().seconds / async.train_virtually().seconds;
  EXPECT_NEAR(ratio, kHarmonic8, 0.05 * kHarmonic8);
}

TEST(VirtualAsynchronousJob, WaitsForTheSlowestWorkerUnderSsp) {
  VirtualCase run = job(3, kSsp2, 1024);
  run.faults.slow = {{.worker = 1, .factor = 4.0}};
  run.train_virtually();
  ASSERT_EQ(run.lines.workers.size(), 3U);
  const std::int64_t slowest = run.lines.workers[1].steps;
  for (const WorkerMetrics& worker : run.lines.workers) {
    // A worker reads values at most two steps ahead of the slowest worker and computes one more
    // step. At the end of the job, no worker waits for a worker that has no batch left.
    EXPECT_LE(worker.steps, slowest + 4) << "worker " << worker.worker;
  }
  EXPECT_GT(*run.lines.workers[0].peers_wait_seconds, run.lines.workers[0].compute_seconds);
  run.options.strategy.consistency = kAsync;
  run.train_virtually();
  EXPECT_GT(run.lines.workers[0].steps, 3 * run.lines.workers[1].steps);
  EXPECT_NEAR(*run.lines.workers[0].peers_wait_seconds, 0.0, 0.04);
}

TEST(VirtualAsynchronousJob, WithABackupDoesNotWaitForASlowWorker) {
  VirtualCase sync = job(4, {}, 1024);
  sync.faults.slow = {{.worker = 3, .factor = 4.0}};
  const double waiting = sync.train_virtually().seconds;
  VirtualCase backup = job(4, {.backup_workers = 1}, 1024);
  backup.faults.slow = sync.faults.slow;
  const Summary summary = backup.train_virtually();
  EXPECT_LT(summary.seconds, 0.5 * waiting);
  EXPECT_EQ(summary.samples, 1024) << "what was dropped is trained by others";
  EXPECT_EQ(summary.steps, 1024 / 8 / 3) << "three gradients make a step";
}

TEST(VirtualAsynchronousJob, LosesNoSampleOfAKilledWorker) {
  for (const ps::ConsistencyOptions& consistency :
       {kAsync, kSsp2, ps::ConsistencyOptions{.backup_workers = 1}}) {
    VirtualCase run = job(3, consistency, 768);
    draw_exponential_times(run);
    run.faults.kills = {{.worker = 1, .at_seconds = 0.1}};
    const Summary summary = run.train_virtually();
    EXPECT_EQ(summary.samples, 768);
    EXPECT_EQ(summary.steps, 768 / 8 / (3 - 1 - (consistency.backup_workers == 0 ? 1 : 0)));
    EXPECT_LE(run.lines.workers[1].seconds, 0.1);
    EXPECT_GT(summary.seconds, 0.2);
  }
}

TEST(VirtualAsynchronousJob, AcceptsARestartedWorker) {
  VirtualCase run = job(2, kAsync, 1024);
  run.faults.kills = {{.worker = 1, .at_seconds = 0.105, .restart_seconds = 0.1}};
  const Summary summary = run.train_virtually();
  EXPECT_EQ(summary.samples, 1024);
  // The job has 128 batches of 10 ms, and one of the two workers trains alone from 0.105 to 0.205
  // s.
  EXPECT_NEAR(summary.seconds, 0.01 * (128 + 10) / 2, 0.011);
  EXPECT_NEAR(run.lines.workers[1].seconds, summary.seconds - 0.1, 1e-9);
}

TEST(VirtualAsynchronousJob, AcceptsAWorkerThatJoinsLater) {
  VirtualCase run = job(1, kAsync, 1024);
  run.faults.joins = {{.worker = 1, .at_seconds = 0.5}};
  const Summary summary = run.train_virtually();
  EXPECT_EQ(summary.samples, 1024);
  EXPECT_NEAR(summary.seconds, 0.5 + 0.01 * (128 - 50) / 2, 0.011);
  ASSERT_EQ(run.lines.workers.size(), 2U);
  EXPECT_NEAR(run.lines.workers[1].seconds, summary.seconds - 0.5, 1e-9);
}

TEST(VirtualAsynchronousJob, EndsAtItsTimeLimit) {
  for (const ps::ConsistencyOptions& consistency : {kAsync, kSsp2}) {
    VirtualCase run = job(3, consistency, 4096);
    run.options.loop.max_seconds = 0.1;  // ten steps take this time
    const Summary summary = run.train_virtually();
    EXPECT_NEAR(summary.seconds, 0.1, 0.011);
    EXPECT_EQ(summary.steps, 30);
    EXPECT_EQ(run.lines.evaluations.back().step, 30) << "the end is evaluated";
  }
}

TEST(VirtualAsynchronousJob, NamesTheKilledWorkerIfNoWorkerIsLeft) {
  VirtualCase run = job(1, kAsync, 256);
  run.faults.kills = {{.worker = 0, .at_seconds = 0.1}};
  EXPECT_TRUE(
      contains(message_of<PeerError>([&] { run.train_virtually(); }), "worker 0 was killed"));
}

// The links of the two workers have a delay of 1 ms and unlimited rate, so a step takes 10 ms and
// two messages.
TEST(VirtualAsynchronousJob, AccountsForTheTimeOfItsWorkers) {
  VirtualCase run = job(2, kAsync, 256);
  run.faults.link = {.delay_seconds = 0.001};
  run.train_virtually();
  ASSERT_EQ(run.lines.workers.size(), 2U);
  for (const WorkerMetrics& worker : run.lines.workers) {
    EXPECT_EQ(worker.steps, 16);
    EXPECT_DOUBLE_EQ(worker.compute_seconds, 0.16);
    EXPECT_DOUBLE_EQ(worker.communication_exposed_seconds, 0.032);
    EXPECT_DOUBLE_EQ(*worker.peers_wait_seconds, 0.0);
    EXPECT_EQ(*worker.bytes_sent, *worker.bytes_received);
    EXPECT_EQ(*worker.bytes_sent % 16, 0);
  }
}

// An update needs a step of 10 ms and then 40 ms on the server, also for the worker whose gradient
// came too late.
TEST(VirtualAsynchronousJob, SendsNoValuesBeforeTheirUpdateHasEnded) {
  VirtualCase job("parameter-server", 32 * VirtualCase::kBatch);
  job.workers = 2;
  job.servers = 1;
  job.options.strategy.consistency = {.consistency = ps::Consistency::kSync, .backup_workers = 1};
  const double bytes = 4.0 * static_cast<double>(job.graph().parameter_layout().total());
  job.faults.server_bytes_per_second = bytes / 0.04;
  const Summary summary = job.train_virtually();
  EXPECT_EQ(summary.steps, 32);
  EXPECT_NEAR(summary.seconds, 32 * 0.05, 1e-3);
  // The time on the servers is exposed.
  EXPECT_NEAR(summary.communication_exposed_fraction, 0.8, 0.01);
}

TEST(VirtualAsynchronousJob, SendsCompressedGradientsToSummingServers) {
  VirtualCase job("parameter-server", 32 * VirtualCase::kBatch);
  job.workers = 2;
  job.servers = 1;
  job.options.strategy.consistency = {.consistency = ps::Consistency::kSync, .backup_workers = 1};
  job.options.strategy.parameter_server.compression = {.codec = ps::Codec::kTopK, .fraction = 0.01};
  const double bytes = 4.0 * static_cast<double>(job.graph().parameter_layout().total());
  job.faults.server_bytes_per_second = bytes / 0.04;
  EXPECT_LT(job.train_virtually().seconds, 32 * 0.012) << "an update takes 2 % of 40 ms";
}

// A kill may come before the first bucket of a step is complete, between two buckets, while buckets
// wait for a busy server, and while the worker waits for values.
TEST(VirtualAsynchronousJob, LosesNoSampleOfAWorkerThatIsKilledAtAnyMomentOfAStep) {
  for (const ps::Consistency consistency :
       {ps::Consistency::kAsync, ps::Consistency::kSsp, ps::Consistency::kSync}) {
    for (int tenth = 0; tenth < 20; ++tenth) {
      VirtualCase job("parameter-server", 256, "mnist-cnn");
      job.workers = 3;
      job.servers = 2;
      job.options.strategy.bucket_bytes = 32 << 10;
      job.options.strategy.consistency = {.consistency = consistency, .max_staleness = 2};
      if (consistency == ps::Consistency::kSync)
        job.options.strategy.consistency.backup_workers = 1;
      job.faults.link = {.delay_seconds = 0.001, .bytes_per_second = 100e6};
      job.faults.server_bytes_per_second = 50e6;
      job.faults.kills = {
          {.worker = 1, .at_seconds = 0.03 + 0.002 * tenth, .restart_seconds = 0.02}};
      const Summary summary = job.train_virtually();
      EXPECT_EQ(summary.samples, 256) << tenth << " " << name(consistency);
    }
  }
}

TEST(VirtualAsynchronousJob, RefusesToKillAWorkerOfASingleProcess) {
  VirtualCase run("central-storage");
  run.workers = 2;
  run.options.strategy.consistency = kAsync;
  run.faults.kills = {{.worker = 1, .at_seconds = 0.1, .restart_seconds = 0.1}};
  EXPECT_TRUE(contains(message_of<UsageError>([&] { run.train_virtually(); }), "is one process"));
}

}  // namespace
}  // namespace syncopate::bench
