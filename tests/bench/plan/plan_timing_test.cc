// Compares the timing simulation of `plan` with training under the virtual clock and with formulas.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "bench/compare/run_plan.h"
#include "bench/plan/plan.h"
#include "bench/virtual_clock/time_model.h"
#include "bench/virtual_clock/timing.h"
#include "models/base/errors.h"
#include "ps/shard/stale_gradients.h"
#include "tests/bench/virtual_clock/virtual_case.h"

namespace syncopate::bench {
namespace {

constexpr double kHarmonic8 = 2.717857;
constexpr Link kSlow{.delay_seconds = 0.001, .bytes_per_second = 100e6};

ServiceTimeOptions ten_milliseconds(ServiceTimeKind kind) {
  return {.kind = kind, .mean_milliseconds = 10.0};
}

// Returns a job with one server, 1 MB of values, constant steps of 10 ms and no link limits.
TimingOptions job_of(const std::string& word, int workers) {
  const PlanBuckets one{.served = {.bytes = {1'000'000}, .owner = {0}},
                        .reduced = {.bytes = {1'000'000}}};
  TimingOptions options =
      timing_of(parse_variant(word, workers, 1), one,
                {.service_time = ten_milliseconds(ServiceTimeKind::kConstant)}, 5);
  options.gradients = 20'000;
  return options;
}

// Returns the samples per second over the first 95 % of the steps. At its end a job has fewer
// batches than workers, and the simulation does not model that.
double samples_per_second_of(const RecordedLines& lines) {
  const StepMetrics& until = lines.steps[lines.steps.size() * 95 / 100];
  return static_cast<double>(until.samples) / until.seconds;
}

// Trains and simulates an equal number of steps of every worker and compares throughput and
// staleness.
void expect_same_throughput(const std::string& word, int workers, ServiceTimeKind kind,
                            const Link& link, int servers) {
  constexpr std::int64_t kSteps = 400;
  const Variant variant = parse_variant(word, workers, servers);
  VirtualCase trained(variant.strategy,
                      kSteps * (workers - variant.backup_workers) * VirtualCase::kBatch);
  trained.workers = workers;
  trained.servers = variant.servers;
  trained.faults = {.service_time = ten_milliseconds(kind), .link = link};
  TimingOptions options =
      timing_of(variant, plan_buckets_of(trained.graph(), servers), trained.faults, 5);
  // Of the gradients of a rule that drops some, at least one per round is applied.
  const bool drops = ps::drops_gradients(variant.consistency) && variant.backup_workers == 0;
  options.gradients = kSteps * workers * (drops ? workers : 1);
  set_strategy(variant, trained.options.strategy);
  const Summary summary = trained.train_virtually();
  const double found = samples_per_second_of(trained.lines);

  const TimingResult timing = simulate_timing(options);
  const double samples_per_second =
      timing.gradients_per_second() * static_cast<double>(VirtualCase::kBatch);
  EXPECT_NEAR(samples_per_second / found, 1.0, 0.02)
      << word << ", " << workers << " workers, " << (link.is_plain() ? "no links" : "links");
  // The first gradients of a job are less stale; training counts them, and the simulation leaves
  // them out.
  EXPECT_NEAR(timing.staleness_mean, summary.staleness_mean, 0.02 * workers) << word;
}

// As above, with many messages to and from two servers, whose updates take time. bytes_per_second:
// the speed of the servers.
void expect_same_throughput_of_many_messages(const std::string& word, double bytes_per_second,
                                             const Link& link) {
  constexpr std::int64_t kSteps = 400;
  const Variant variant = parse_variant(word, 4, 2);
  VirtualCase trained(variant.strategy, kSteps * (4 - variant.backup_workers) * VirtualCase::kBatch,
                      "mnist-cnn");
  trained.workers = 4;
  trained.servers = 2;
  trained.options.strategy.bucket_bytes = 32 << 10;
  trained.faults = {.service_time = ten_milliseconds(ServiceTimeKind::kExponential), .link = link};
  trained.faults.server_bytes_per_second = bytes_per_second;
  const ps::Placement placement = ps::place_variables(trained.graph().parameter_layout(),
                                                      {.servers = 2, .message_bytes = 32 << 10});
  ASSERT_GE(placement.buckets.size(), 4U);
  TimingOptions options =
      timing_of(variant, {.served = served_buckets(trained.graph(), placement), .reduced = {}},
                trained.faults, 5);
  options.gradients = kSteps * 4;
  set_strategy(variant, trained.options.strategy);
  const Summary summary = trained.train_virtually();
  const TimingResult timing = simulate_timing(options);
  const double samples_per_second =
      timing.gradients_per_second() * static_cast<double>(VirtualCase::kBatch);
  EXPECT_NEAR(samples_per_second / samples_per_second_of(trained.lines), 1.0, 0.02)
      << word << ", " << bytes_per_second;
  EXPECT_NEAR(timing.staleness_mean, summary.staleness_mean, 0.08) << word;
}

TEST(SimulatedTiming, OfManyMessagesIsThatOfTraining) {
  for (const char* word :
       {"parameter-server:sync", "parameter-server:async", "parameter-server:ssp:2",
        "parameter-server:sync+backup:1", "parameter-server:async+displacement:average:4"}) {
    expect_same_throughput_of_many_messages(word, 100e6, kSlow);
    // The update of a gradient takes longer than a step.
    expect_same_throughput_of_many_messages(word, 10e6, {});
  }
}

void expect_same_throughput_without_and_with_links(const std::string& word) {
  for (const int workers : {2, 4, 8}) {
    expect_same_throughput(word, workers, ServiceTimeKind::kConstant, {}, 1);
    expect_same_throughput(word, workers, ServiceTimeKind::kExponential, {}, 1);
    expect_same_throughput(word, workers, ServiceTimeKind::kExponential, kSlow, 2);
  }
}

TEST(SimulatedTiming, OfMirroredIsThatOfTraining) {
  expect_same_throughput_without_and_with_links("mirrored");
}

TEST(SimulatedTiming, OfLocalUpdatesIsThatOfTraining) {
  expect_same_throughput_without_and_with_links("local-sgd:average:4");
}

TEST(SimulatedTiming, OfPushedDisplacementsIsThatOfTraining) {
  for (const char* word : {"parameter-server:async+displacement:average:4",
                           "parameter-server:ssp:2+displacement:average:4"}) {
    expect_same_throughput_without_and_with_links(word);
  }
}

TEST(SimulatedTiming, OfAsyncIsThatOfTraining) {
  expect_same_throughput_without_and_with_links("parameter-server:async");
}

TEST(SimulatedTiming, OfSspIsThatOfTraining) {
  expect_same_throughput_without_and_with_links("parameter-server:ssp:2");
}

TEST(SimulatedTiming, OfSyncWithABackupIsThatOfTraining) {
  expect_same_throughput_without_and_with_links("parameter-server:sync+backup:1");
}

TEST(SimulatedTiming, OfRulesThatDropGradientsIsThatOfTraining) {
  for (const char* word :
       {"parameter-server:async+ringmaster:2", "parameter-server:async+rennala:4"}) {
    expect_same_throughput(word, 4, ServiceTimeKind::kConstant, {}, 1);
    expect_same_throughput(word, 4, ServiceTimeKind::kExponential, {}, 1);
    expect_same_throughput(word, 4, ServiceTimeKind::kExponential, kSlow, 2);
  }
}

TEST(SimulatedTiming, OfAPipelineIsThatOfTraining) {
  constexpr std::int64_t kSteps = 60;
  for (const Link& link : {Link{}, kSlow}) {
    VirtualCase trained("pipeline", kSteps * 4 * VirtualCase::kBatch, "mnist-cnn");
    trained.options.strategy.micro_batches = 4;
    trained.workers = 3;
    trained.faults = {.service_time = ten_milliseconds(ServiceTimeKind::kExponential),
                      .link = link};
    const Summary summary = trained.train_virtually();
    TimingOptions options = timing_of(parse_variant("pipeline:4", 3, 1),
                                      plan_buckets_of(trained.graph(), 1), trained.faults, 5);
    options.gradients = 100'000;
    options.pipeline = load_of(cut_into_stages(trained.graph(), 3), 4, VirtualCase::kBatch);
    const TimingResult timing = simulate_timing(options);
    // 5 %: the mean of 60 steps with exponential delays.
    EXPECT_NEAR(timing.gradients_per_second() * VirtualCase::kBatch / summary.samples_per_second,
                1.0, 0.05);
  }
}

TEST(SimulatedTiming, OfEqualStagesIsTheIdleShareOfAPipeline) {
  for (const int stages : {2, 4, 8}) {
    for (const int micro_batches : {1, 4, 16}) {
      TimingOptions options = job_of("pipeline:" + std::to_string(micro_batches), stages);
      const auto n = static_cast<std::size_t>(stages);
      options.pipeline = {.work = std::vector<double>(n, 1.0 / stages),
                          .output_bytes = std::vector<std::int64_t>(n - 1, 1000),
                          .micro_batches = micro_batches};
      const TimingResult timing = simulate_timing(options);
      const double idle = (stages - 1.0) / (micro_batches + stages - 1.0);
      // 1e-5: times are whole nanoseconds.
      EXPECT_NEAR(timing.peers_share, idle, 1e-5);
      EXPECT_NEAR(timing.gradients_per_second(), (1.0 - idle) * stages * 100.0, 0.1);
    }
  }
}

TEST(SimulatedTiming, OfMirroredIsAStepAndARing) {
  TimingOptions options = job_of("mirrored", 4);
  options.faults.link = kSlow;
  // An all-reduce sends 6 messages of 250 KB; each takes 2.5 ms and 1 ms of delay.
  const TimingResult timing = simulate_timing(options);
  EXPECT_NEAR(timing.updates_per_second, 1.0 / 0.031, 1e-6);
  EXPECT_NEAR(timing.compute_share, 10.0 / 31.0, 1e-6);
  EXPECT_NEAR(timing.communication_share, 21.0 / 31.0, 1e-6);
  EXPECT_EQ(timing.staleness_max, 0);
}

// A round has 4 steps of 10 ms and then the all-reduce of 21 ms.
TEST(SimulatedTiming, OfLocalUpdatesHasOneRingForTheStepsOfARound) {
  TimingOptions options = job_of("local-sgd:average:4", 4);
  options.faults.link = kSlow;
  const TimingResult timing = simulate_timing(options);
  EXPECT_NEAR(timing.updates_per_second, 1.0 / 0.061, 1e-6);
  EXPECT_EQ(timing.gradients_per_update, 16.0);
  EXPECT_NEAR(timing.communication_share, 21.0 / 61.0, 1e-6);
}

// Two workers: a round lasts as long as the slower of two sums of H exponential times. Source: the
// mean of the larger of two gamma variables, H (1 + C(2H, H) / 4^H).
TEST(SimulatedTiming, OfLocalUpdatesFollowsTheFormulaOfExponentialTimes) {
  const std::pair<const char*, double> steps_per_round[] = {{"local-sgd:average:1", 1.5},
                                                            {"local-sgd:average:2", 2.75},
                                                            {"local-sgd:average:5", 6.23046875}};
  for (const auto& [word, steps] : steps_per_round) {
    TimingOptions options = job_of(word, 2);
    options.faults.service_time = ten_milliseconds(ServiceTimeKind::kExponential);
    options.gradients = 200'000;
    const double seconds = 1.0 / simulate_timing(options).updates_per_second;
    // 2 %: more than three standard errors of the mean of 20,000 rounds.
    EXPECT_NEAR(seconds, 0.01 * steps, 0.02 * 0.01 * steps) << word;
  }
  TimingOptions eight = job_of("local-sgd:average:1", 8);
  eight.faults.service_time = ten_milliseconds(ServiceTimeKind::kExponential);
  eight.gradients = 100'000;
  EXPECT_NEAR(simulate_timing(eight).gradients_per_second(), 8 / kHarmonic8 / 0.01,
              0.02 * 8 / kHarmonic8 / 0.01);
}

TEST(SimulatedTiming, OfAsyncIsAsStaleAsThereAreOthers) {
  for (const ServiceTimeKind kind : {ServiceTimeKind::kConstant, ServiceTimeKind::kExponential}) {
    for (const int workers : {1, 3, 8, 64}) {
      TimingOptions options = job_of("parameter-server:async", workers);
      options.faults.service_time = ten_milliseconds(kind);
      const TimingResult timing = simulate_timing(options);
      EXPECT_NEAR(timing.staleness_mean, workers - 1, 0.005 * workers);
      EXPECT_NEAR(timing.compute_share, 1.0, 1e-9);
    }
  }
}

// Source of the formula: Dutta et al. 2018, "Slow and stale gradients can win the race", section 3.
TEST(SimulatedTiming, OfSyncIsSlowerThanOfAsyncByTheHarmonicNumber) {
  TimingOptions sync = job_of("parameter-server:sync", 8);
  TimingOptions async = job_of("parameter-server:async", 8);
  sync.faults.service_time = async.faults.service_time =
      ten_milliseconds(ServiceTimeKind::kExponential);
  sync.gradients = async.gradients = 100'000;
  const TimingResult waiting = simulate_timing(sync);
  const double ratio =
      simulate_timing(async).gradients_per_second() / waiting.gradients_per_second();
  EXPECT_NEAR(ratio, kHarmonic8, 0.02 * kHarmonic8);
  EXPECT_GT(waiting.relative_error, 0.0);
  EXPECT_LT(waiting.relative_error, 0.02);
}

TEST(SimulatedTiming, OfSspIsThatOfASlowWorker) {
  TimingOptions options = job_of("parameter-server:ssp:2", 4);
  options.faults.slow = {{.worker = 1, .factor = 4.0}};
  EXPECT_NEAR(simulate_timing(options).updates_per_second, 4 / 0.04, 0.1);
  options = job_of("parameter-server:async", 4);
  options.faults.slow = {{.worker = 1, .factor = 4.0}};
  EXPECT_NEAR(simulate_timing(options).updates_per_second, 3 / 0.01 + 1 / 0.04, 1.0);
}

// With exponential step times, the worker that ends its step next is a random one. An update comes
// when a worker ends that has begun since the last update. Source of the mean number of steps
// between updates: the birthday problem with 8 days, 1 + 7/8 + 7/8 6/8 + ... Rennala with an update
// of one gradient drops the same gradients.
TEST(SimulatedTiming, OfAFreshGradientIsThatOfTheBirthdayProblem) {
  double steps = 0.0;
  for (double draw = 0.0, all_differ = 1.0; draw < 8.0; ++draw) {
    steps += all_differ;
    all_differ *= (7.0 - draw) / 8.0;
  }
  for (const char* word :
       {"parameter-server:async+ringmaster:1", "parameter-server:async+rennala:1"}) {
    TimingOptions options = job_of(word, 8);
    options.faults.service_time = ten_milliseconds(ServiceTimeKind::kExponential);
    options.gradients = 200'000;
    const TimingResult timing = simulate_timing(options);
    // 2 %: more than three standard errors of the mean of 25,000 updates.
    EXPECT_NEAR(timing.updates_per_second * steps / 800.0, 1.0, 0.02) << word;
    EXPECT_EQ(timing.staleness_max, 0) << word;
  }
}

// Both workers take 10 ms for a step. At 10 ms, their gradients make an update, but worker 0 has
// read the values before it. At 20 ms, the gradient of worker 0 is dropped, and at 30 ms, it
// completes an update, so the gradient of worker 1 is dropped. Then both have read the same values.
TEST(SimulatedTiming, OfAnUpdateOfCollectedGradientsCountsThem) {
  TimingOptions options = job_of("parameter-server:async+rennala:2", 2);
  const TimingResult timing = simulate_timing(options);
  EXPECT_NEAR(timing.updates_per_second, 2 / 0.03, 0.1);
  EXPECT_EQ(timing.gradients_per_update, 2.0);
  options = job_of("parameter-server:async+rennala:20001", 2);
  EXPECT_THROW(simulate_timing(options), UsageError) << "of 20000 gradients";
}

TEST(SimulatedTiming, OfALimitThatNoGradientReachesIsThatOfAsync) {
  TimingOptions async = job_of("parameter-server:async", 8);
  TimingOptions ringmaster = job_of("parameter-server:async+ringmaster:2147483648", 8);
  async.faults.service_time = ringmaster.faults.service_time =
      ten_milliseconds(ServiceTimeKind::kExponential);
  const TimingResult expected = simulate_timing(async);
  const TimingResult found = simulate_timing(ringmaster);
  EXPECT_EQ(found.updates_per_second, expected.updates_per_second);
  EXPECT_EQ(found.staleness_mean, expected.staleness_mean);
  ringmaster.consistency.rule_number = 3;
  EXPECT_LE(simulate_timing(ringmaster).staleness_max, 2);
}

TEST(SimulatedTiming, OfSyncWithABackupIsThatOfTheOthers) {
  TimingOptions options = job_of("parameter-server:sync+backup:1", 4);
  options.faults.slow = {{.worker = 1, .factor = 4.0}};
  const TimingResult timing = simulate_timing(options);
  EXPECT_NEAR(timing.updates_per_second, 100.0, 0.1);
  EXPECT_EQ(timing.gradients_per_update, 3.0);
}

// Each of 4 servers has 1 MB of the values. Its link of 1 Gbit/s carries 125 such parts per second,
// and the workers could compute a million gradients per second.
TEST(SimulatedTiming, OfTenThousandAsynchronousWorkersIsThatOfTheServersLinks) {
  TimingOptions options = job_of("parameter-server:async", 10'000);
  options.buckets.bytes.assign(4, 1'000'000);
  options.buckets.owner = {0, 1, 2, 3};
  options.faults.link = {.delay_seconds = 50e-6, .bytes_per_second = 125e6};
  const TimingResult timing = simulate_timing(options);
  EXPECT_NEAR(timing.updates_per_second, 125.0, 0.01 * 125.0);
  EXPECT_NEAR(timing.staleness_mean, 9999.0, 0.02 * 9999.0);
  EXPECT_GT(timing.communication_share, 0.99);
}

// A server applies 50 MB/s, so a gradient of 1 MB takes it 20 ms, longer than a step of 10 ms.
TEST(SimulatedTiming, OfAsyncIsThatOfAServerThatIsSlowerThanItsWorkers) {
  TimingOptions options = job_of("parameter-server:async", 8);
  EXPECT_NEAR(simulate_timing(options).updates_per_second, 800.0, 1.0);
  options.faults.server_bytes_per_second = 50e6;
  TimingResult timing = simulate_timing(options);
  EXPECT_NEAR(timing.updates_per_second, 50.0, 0.1);
  // In 160 ms a worker computes for 10 ms and waits for its server for the rest.
  EXPECT_NEAR(timing.server_share, 150.0 / 160.0, 1e-3);
  EXPECT_NEAR(timing.compute_share + timing.server_share, 1.0, 1e-9);
  EXPECT_NEAR(timing.staleness_mean, 7.0, 0.05);
  // With one worker the update follows the step: 30 ms.
  options = job_of("parameter-server:async", 1);
  options.faults.server_bytes_per_second = 50e6;
  EXPECT_NEAR(simulate_timing(options).updates_per_second, 1.0 / 0.03, 0.01);
}

TEST(SimulatedTiming, OfASynchronousUpdateHasTheTimeOfAllItsGradients) {
  TimingOptions options = job_of("parameter-server:sync", 4);
  options.faults.server_bytes_per_second = 50e6;
  TimingResult timing = simulate_timing(options);
  EXPECT_NEAR(timing.updates_per_second, 1.0 / 0.09, 1e-6);  // 10 ms, then 4 gradients of 20 ms
  EXPECT_NEAR(timing.server_share, 80.0 / 90.0, 1e-6);
  // The slow worker's gradients come late and are dropped; an update has the 3 others.
  options = job_of("parameter-server:sync+backup:1", 4);
  options.faults.slow = {{.worker = 1, .factor = 40.0}};
  options.faults.server_bytes_per_second = 50e6;
  timing = simulate_timing(options);
  EXPECT_NEAR(timing.updates_per_second, 1.0 / 0.07, 0.1);  // 10 ms, then 3 gradients of 20 ms
}

TEST(SimulatedTiming, OfAnAllReduceIsThatOfARing) {
  TimingOptions options = job_of("multi-worker-mirrored", 8);
  options.faults.link = kSlow;
  // d = 1 ms, t = 10 ms. Ring: 14 messages of 1.25 ms and 1 ms of delay.
  EXPECT_NEAR(simulate_timing(options).updates_per_second, 1.0 / (0.010 + 0.0315), 1e-6);
}

TEST(SimulatedTiming, RefusesMoreBackupsThanWorkers) {
  EXPECT_THROW(simulate_timing(job_of("parameter-server:sync+backup:2", 2)), UsageError);
}

}  // namespace
}  // namespace syncopate::bench
