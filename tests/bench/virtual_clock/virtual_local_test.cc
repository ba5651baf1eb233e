// Tests that local updates under the virtual clock give the bits of the real strategy, and the
// times of the formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/virtual_clock/step_times.h"
#include "models/base/errors.h"
#include "tests/bench/virtual_clock/virtual_case.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

using std::chrono::milliseconds;

constexpr const char* kLocalSgd = "local-sgd";
constexpr Link kSlowLink{.delay_seconds = 0.001, .bytes_per_second = 1000.0};  // a byte takes 1 ms

VirtualCase local_case(std::int64_t samples, std::int64_t sync_every,
                       const std::string& outer = "average", const std::string& model = "mlp") {
  VirtualCase run(kLocalSgd, samples, model);
  run.options.strategy.local.sync_every = sync_every;
  run.options.strategy.local.outer = outer;
  return run;
}

// 6 steps of each worker are two rounds of 3; with 4 steps in a round, the last round has 2.
TEST(VirtualLocalJob, EqualsLocalSgdBitForBit) {
  for (const char* outer : {"average", "slowmo", "diloco"}) {
    for (const int workers : {1, 2, 4}) {
      for (const std::int64_t sync_every : {3, 4}) {
        VirtualCase run = local_case(48L * workers, sync_every, outer);
        run.options.strategy.optimizer.name = "momentum";
        SCOPED_TRACE(outer + std::string(", rounds of ") + std::to_string(sync_every));
        expect_the_bits_of(run, kLocalSgd, workers);
      }
    }
  }
}

// 8 steps: 3 or 4 sum gradients, the others are rounds of 2; the last round has 1 step or 2.
TEST(VirtualLocalJob, BeginsWithSumsOfGradientsAsLocalSgdDoes) {
  for (const InnerState state : {InnerState::kKeep, InnerState::kReset}) {
    for (const int workers : {1, 3}) {
      for (const double local_from : {0.375, 0.5}) {
        VirtualCase run = local_case(64L * workers, 2, "post-local");
        run.options.strategy.optimizer.name = "adam";
        run.options.schedule.learning_rate = 0.01;
        run.options.strategy.local.inner_state = state;
        run.options.strategy.local.local_from = local_from;
        SCOPED_TRACE(local_from);
        expect_the_bits_of(run, kLocalSgd, workers);
      }
    }
  }
}

// 3 steps that sum 20 bytes while they compute, then a round of 2 steps and one of 1.
TEST(StepTimes, OfSumsBeforeRoundsAreThoseOfAnAllReduce) {
  const FaultInjection faults = {
      .service_time = {.kind = ServiceTimeKind::kConstant, .mean_milliseconds = 10.0},
      .link = kSlowLink};
  const TimedBuckets buckets = {.bytes = {20}};
  StepTimes sums({.workers = 2, .buckets = buckets}, faults, 1);
  StepTimes times({.workers = 2,
                   .buckets = buckets,
                   .steps_per_exchange = 2,
                   .summed_steps = 3,
                   .summed_buckets = buckets},
                  faults, 1);
  VirtualTime end{0};
  for (int step = 1; step <= 3; ++step) {
    end = sums.step(step, {});
    EXPECT_EQ(times.step(step, {}), end) << step;
  }
  EXPECT_EQ(times.step(5, {}), end + milliseconds(2 * 10 + 22));
  EXPECT_EQ(times.step(6, {}), end + milliseconds(3 * 10 + 2 * 22));
  EXPECT_EQ(times.accounts()[0].steps, 6);
}

// 2 steps of sums, then rounds of 3, and a checkpoint after step 5 or after step 2.
TEST(VirtualLocalJob, RepeatsSumsAndRoundsSinceTheLastCheckpoint) {
  VirtualCase run = local_case(64, 3, "post-local");
  run.options.strategy.local.local_from = 0.25;
  run.options.loop.eval_every_steps = 4;
  run.faults.kills = {{.worker = 0, .at_seconds = 0.065, .restart_seconds = 0.1}};
  EXPECT_DOUBLE_EQ(run.train_virtually().seconds, 0.165 + 0.03);
  EXPECT_EQ(run.lines.summaries.at(0).rounds->number, 2);
  run.options.loop.eval_every_steps = 2;
  run.faults.kills.front().at_seconds = 0.045;
  EXPECT_DOUBLE_EQ(run.train_virtually().seconds, 0.145 + 0.06);
}

TEST(VirtualLocalJob, TreatsTheStateOfInnerOptimizersAsLocalSgdDoes) {
  for (const InnerState state : {InnerState::kReset, InnerState::kAverage}) {
    VirtualCase run = local_case(96, 2);
    run.options.strategy.optimizer.name = "adam";
    run.options.schedule.learning_rate = 0.01;
    run.options.strategy.local.inner_state = state;
    expect_the_bits_of(run, kLocalSgd, 2);
  }
}

TEST(VirtualLocalJob, WeighsUnevenAndEmptySharesAsLocalSgdDoes) {
  VirtualCase run = local_case(100, 2);
  run.options.global_batch_size = 9;  // four workers get 3, 3, 3 and no samples
  expect_the_bits_of(run, kLocalSgd, 4);
}

TEST(VirtualLocalJob, FollowsASchedulePerInnerStepAsLocalSgdDoes) {
  VirtualCase run = local_case(64, 3, "slowmo");
  run.options.schedule.kind = ScheduleKind::kCosine;
  run.options.loop.total_epochs = 2;
  expect_the_bits_of(run, kLocalSgd, 2);
}

// Evaluations average statistics, too, so the rounds are shorter than the way between evaluations.
TEST(VirtualLocalJob, AveragesRunningStatisticsAsLocalSgdDoes) {
  VirtualCase run = local_case(64, 1, "diloco", "resnet20");
  expect_the_bits_of(run, kLocalSgd, 2);
}

TEST(VirtualLocalJob, WithOneWorkerThatAveragesEqualsOneDevice) {
  VirtualCase run = local_case(64, 4);
  const std::string found = run.train_virtually().weights_hash;
  EXPECT_EQ(found, run.train_in_real_time("one-device", 1).weights_hash);
}

TEST(VirtualLocalJob, RefusesARoundWithoutALengthAndOneLongerThanTheRun) {
  VirtualCase without = local_case(64, 0);
  EXPECT_TRUE(contains(message_of<UsageError>([&] { without.train_virtually(); }),
                       "requires --sync-every N"));
  VirtualCase longer = local_case(64, 9);  // the run has 8 steps
  EXPECT_TRUE(contains(message_of<UsageError>([&] { longer.train_virtually(); }),
                       "--sync-every 9: the whole run has 8 steps"));
}

// Both workers compute 3 steps of 10 ms and then sum 20 bytes in 2 messages of 11 ms.
TEST(StepTimes, OfARoundHaveOneAllReduceAfterItsLastStep) {
  const FaultInjection faults = {
      .service_time = {.kind = ServiceTimeKind::kConstant, .mean_milliseconds = 10.0},
      .link = kSlowLink};
  StepTimes times({.workers = 2, .buckets = {.bytes = {20}}, .steps_per_exchange = 3}, faults, 1);
  EXPECT_EQ(times.step(3, {}), milliseconds(3 * 10 + 22));
  EXPECT_EQ(times.accounts()[0].steps, 3);
  EXPECT_EQ(times.accounts()[0].compute, milliseconds(30));
  EXPECT_EQ(times.accounts()[0].communication, milliseconds(22));
  EXPECT_EQ(times.accounts()[0].bytes_sent, 20);
  EXPECT_EQ(times.step(5, {}), milliseconds(52 + 2 * 10 + 22));  // the last round has 2 steps
  EXPECT_EQ(times.accounts()[0].steps, 5);
}

// A round of H steps with exponential times of mean 1 lasts as long as the slower of two sums of H
// of them. Source: the mean of the larger of two gamma variables, H (1 + C(2H, H) / 4^H).
TEST(StepTimes, OfRoundsOfTwoExponentialWorkersFollowTheirFormula) {
  for (const std::int64_t h : {1, 2, 8}) {
    const FaultInjection faults = {
        .service_time = {.kind = ServiceTimeKind::kExponential, .mean_milliseconds = 1.0}};
    StepTimes times({.workers = 2, .buckets = {.bytes = {4}}, .steps_per_exchange = h}, faults, 7);
    constexpr std::int64_t kRounds = 20'000;
    VirtualTime end{0};
    for (std::int64_t round = 1; round <= kRounds; ++round) end = times.step(round * h, {});
    double ratio = 1.0;  // C(2H, H) / 4^H
    for (std::int64_t i = 1; i <= h; ++i) {
      ratio *= static_cast<double>(2 * i - 1) / static_cast<double>(2 * i);
    }
    const double expected = static_cast<double>(h) * (1.0 + ratio) * 1e-3;
    // 2 %: more than four standard errors of the mean of 20,000 rounds.
    EXPECT_NEAR(seconds_of(end) / kRounds, expected, 0.02 * expected) << h;
  }
}

// One worker takes 8 steps of 10 ms in rounds of 3. A checkpoint becomes due at step 4, and is
// written at the end of its round, after step 6. The kill interrupts the last round.
TEST(VirtualLocalJob, RepeatsTheRoundsSinceTheLastCheckpoint) {
  VirtualCase run = local_case(64, 3);
  run.options.loop.eval_every_steps = 4;
  run.faults.kills = {{.worker = 0, .at_seconds = 0.065, .restart_seconds = 0.1}};
  EXPECT_DOUBLE_EQ(run.train_virtually().seconds, 0.165 + 0.02);
  run.options.loop.eval_every_steps = 7;  // no checkpoint before the kill: all rounds are repeated
  EXPECT_DOUBLE_EQ(run.train_virtually().seconds, 0.165 + 0.08);
}

// 16 steps of 8 samples for each of 2 workers, in 4 rounds: each exchange sends what a step of
// mirrored does.
TEST(VirtualLocalJob, SendsTheBytesOfAStepOncePerRound) {
  VirtualCase mirrored("mirrored", 256);
  mirrored.workers = 2;
  mirrored.train_virtually();
  const std::int64_t bytes = mirrored.lines.workers.at(0).bytes_sent.value();
  VirtualCase run = local_case(256, 4);
  run.workers = 2;
  run.train_virtually();
  EXPECT_EQ(run.lines.workers.at(0).steps, 16);
  EXPECT_EQ(run.lines.summaries.at(0).rounds->number, 4);
  EXPECT_EQ(run.lines.workers.at(0).bytes_sent, bytes / 4);
  const double per_sample = 2.0 * static_cast<double>(bytes) / 256.0;  // of both workers
  EXPECT_EQ(mirrored.lines.summaries.at(0).bytes_per_sample, per_sample);
  EXPECT_EQ(run.lines.summaries.at(0).bytes_per_sample, per_sample / 4);
  run.faults.link.bytes_per_second = 1e6;  // no exchange overlaps with a step
  const double seconds = run.train_virtually().seconds;
  EXPECT_NEAR(seconds, 16 * 0.01 + 1e-6 * static_cast<double>(bytes / 4), 1e-6);
  run.options.strategy.optimizer.name = "momentum";
  run.options.strategy.local.inner_state = InnerState::kAverage;  // also sums the momentum
  run.train_virtually();
  EXPECT_EQ(run.lines.workers.at(0).bytes_sent, bytes / 2);
}

}  // namespace
}  // namespace syncopate::bench
