// Checks the rounds of local updates in a plan: their times by formulas and by training under the
// virtual clock, their bytes and memory, and what is refused.
#include "bench/plan/plan_rounds.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "bench/compare/run_plan.h"
#include "bench/plan/plan.h"
#include "models/base/errors.h"
#include "tests/bench/virtual_clock/virtual_case.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

constexpr Link kSlowLink{.delay_seconds = 0.001, .bytes_per_second = 100e6};

// Returns a job with one server, 1 MB of values and constant steps of 10 ms.
TimingOptions job_with_rounds(const std::string& word, int workers, const Link& link) {
  const PlanBuckets one{.served = {.bytes = {1'000'000}, .owner = {0}},
                        .reduced = {.bytes = {1'000'000}}};
  TimingOptions options =
      timing_of(parse_variant(word, workers, 1, SharedBy::kPlan), one,
                {.service_time = {.kind = ServiceTimeKind::kConstant, .mean_milliseconds = 10.0},
                 .link = link},
                5);
  options.gradients = 20'000;
  return options;
}

void expect_equal_timing(const TimingResult& found, const TimingResult& expected) {
  EXPECT_EQ(found.updates_per_second, expected.updates_per_second);
  EXPECT_EQ(found.gradients_per_update, expected.gradients_per_update);
  EXPECT_EQ(found.staleness_mean, expected.staleness_mean);
  EXPECT_EQ(found.compute_share, expected.compute_share);
  EXPECT_EQ(found.communication_share, expected.communication_share);
  EXPECT_EQ(found.peers_share, expected.peers_share);
}

// A round has 4 steps of 10 ms. A message of 1 MB takes 10 ms and 1 ms of delay, in each direction.
TEST(TimingOfADisplacement, IsOnePushForTheStepsOfARound) {
  const TimingResult timing = simulate_timing(
      job_with_rounds("parameter-server:async+displacement:average:4", 1, kSlowLink));
  EXPECT_NEAR(timing.updates_per_second, 1.0 / 0.062, 1e-6);
  EXPECT_EQ(timing.gradients_per_update, 4.0);
  EXPECT_NEAR(timing.communication_share, 22.0 / 62.0, 1e-6);
}

TEST(TimingOfADisplacement, IsThatOfAGradientInRoundsOfOneStep) {
  for (const Link& link : {Link{}, kSlowLink}) {
    for (const std::string word :
         {"parameter-server:async", "parameter-server:ssp:1", "central-storage:async"}) {
      TimingOptions gradients = job_with_rounds(word, 4, link);
      TimingOptions displacements = job_with_rounds(word + "+displacement:average:1", 4, link);
      gradients.faults.service_time.kind = displacements.faults.service_time.kind =
          ServiceTimeKind::kExponential;
      expect_equal_timing(simulate_timing(displacements), simulate_timing(gradients));
    }
  }
}

// The displacement of the last layer takes 31 ms to its server, its update 30 ms, and the new
// values take 31 ms back. The first step uses them after a part of its 10 ms; a round has four
// steps.
TEST(TimingOfADisplacement, WaitsForValuesInTheFirstStepOfARoundOnly) {
  const VirtualCase network("parameter-server", 256, "mnist-cnn");
  const TimedBuckets all = reduced_buckets(network.graph(), 1 << 10);
  TimingOptions options =
      job_with_rounds("parameter-server:async+displacement:average:4", 1, kSlowLink);
  options.buckets = {.profile = all.profile.subset({0, all.first_used()}),
                     .bytes = {3'000'000, 100},
                     .owner = {0, 1}};
  options.buckets.profile.complete_at_end();
  options.faults.server_bytes_per_second = 100e6;
  const VirtualTime used = options.buckets.use(0, std::chrono::milliseconds(10));
  ASSERT_GT(seconds_of(used), 0.001);
  EXPECT_NEAR(1.0 / simulate_timing(options).updates_per_second, 0.092 + 0.04 - seconds_of(used),
              1e-6);
}

// Staleness counts displacements. A worker that takes four times as long as the others holds them
// back under ssp:1, and does not under async.
TEST(TimingOfADisplacement, CountsStalenessInRounds) {
  TimingOptions options = job_with_rounds("parameter-server:async+displacement:diloco:8", 4, {});
  EXPECT_NEAR(simulate_timing(options).staleness_mean, 3.0, 0.01);
  options.faults.slow = {{.worker = 1, .factor = 4.0}};
  EXPECT_NEAR(simulate_timing(options).updates_per_second, 3 / 0.08 + 1 / 0.32, 0.2);
  options = job_with_rounds("parameter-server:ssp:1+displacement:diloco:8", 4, {});
  options.faults.slow = {{.worker = 1, .factor = 4.0}};
  EXPECT_NEAR(simulate_timing(options).updates_per_second, 4 / 0.32, 0.1);
}

// Sums of gradients take 10 ms and an all-reduce of 21 ms, a round of 4 steps 40 ms and 21 ms. With
// a quarter of 16 steps, that is 4 * 31 ms and 3 * 61 ms.
TEST(TimingOfPostLocal, IsThatOfItsTwoParts) {
  TimingOptions options = job_with_rounds("local-sgd:post-local:4", 4, kSlowLink);
  const TimingResult rounds = simulate_timing(options);
  const PlannedRounds planned = plan_rounds(options, rounds, 0.25, {});
  EXPECT_NEAR(planned.seconds, 0.061, 1e-9);
  // An all-reduce of 4 workers sends 1.5 MB, 7 times in 16 steps.
  EXPECT_NEAR(planned.sent_bytes_per_step, 7.0 / 16.0 * 1.5e6, 1e-3);
  options.steps_per_exchange = 1;
  const TimingResult found = timing_of_both(simulate_timing(options), rounds, 0.25, 4);
  constexpr double kSeconds = 4 * 0.031 + 3 * 0.061;
  EXPECT_NEAR(found.updates_per_second, 7.0 / kSeconds, 1e-6);
  EXPECT_NEAR(found.gradients_per_second(), 64.0 / kSeconds, 1e-6);
  EXPECT_NEAR(found.compute_share, 0.16 / kSeconds, 1e-6);
  EXPECT_NEAR(found.communication_share, 7 * 0.021 / kSeconds, 1e-6);
}

TEST(TimingOfPostLocal, IsThatOfMirroredInRoundsOfOneStep) {
  const TimingOptions options = job_with_rounds("local-sgd:post-local:1", 4, kSlowLink);
  expect_equal_timing(simulate_timing(options),
                      simulate_timing(job_with_rounds("multi-worker-mirrored", 4, kSlowLink)));
}

TEST(TimingOfPostLocal, IsThatOfTraining) {
  constexpr std::int64_t kSteps = 800;
  const Variant variant = parse_variant("local-sgd:post-local:4", 4, 0);
  VirtualCase trained("local-sgd", kSteps * 4 * VirtualCase::kBatch);
  trained.workers = 4;
  trained.faults = {
      .service_time = {.kind = ServiceTimeKind::kExponential, .mean_milliseconds = 10.0},
      .link = kSlowLink};
  set_strategy(variant, trained.options.strategy);
  trained.options.strategy.local.local_from = 0.5;
  const Summary summary = trained.train_virtually();
  TimingOptions options =
      timing_of(variant, plan_buckets_of(trained.graph(), 1), trained.faults, 5);
  options.gradients = 40'000;
  const TimingResult rounds = simulate_timing(options);
  options.buckets = plan_buckets_of(trained.graph(), 1).reduced;
  options.steps_per_exchange = 1;
  const TimingResult found = timing_of_both(simulate_timing(options), rounds, 0.5, 4);
  // 5 %: the mean of 400 steps and 100 rounds with exponential delays.
  EXPECT_NEAR(found.gradients_per_second() * VirtualCase::kBatch / summary.samples_per_second, 1.0,
              0.05);
}

PlanOptions plan_with_rounds(const std::vector<std::string>& strategies) {
  PlanOptions options;
  options.model = "mlp";
  options.data = "synthetic:1x8x8:4:512";
  options.batch_size_per_replica = 8;
  options.calibrate_steps = 20;
  options.gradients = 2000;
  options.service_time = "exponential:5";
  options.workers = {2};
  options.strategies = strategies;
  return options;
}

nlohmann::json rows_of(PlanOptions options, std::string& text) {
  const TemporaryFolder folder;
  options.json = folder / "plan.json";
  std::ostringstream out;
  run_plan(options, out);
  text = out.str();
  return nlohmann::json::parse(std::ifstream(options.json)).at("rows");
}

TEST(PlanOfRounds, ShowsTheirBytesAndMemory) {
  std::string text;
  const nlohmann::json rows =
      rows_of(plan_with_rounds({"local-sgd:average:1", "local-sgd:average:8",
                                "local-sgd:post-local:8{local-from=1}",
                                "parameter-server:async+displacement:diloco:8",
                                "central-storage:async+displacement:diloco:8", "mirrored"}),
              text);
  EXPECT_TRUE(contains(text, "rounds of", "sent per step", "central-storage:async+displacement"));
  const auto of = [&](std::size_t row, const char* key) {
    return rows.at(row).at("rounds").at(key).get<double>();
  };
  const double every_step = of(0, "sent_bytes_per_step");
  EXPECT_EQ(of(1, "sent_bytes_per_step"), every_step / 8);
  EXPECT_EQ(of(2, "sent_bytes_per_step"), every_step * (1.0 + 1.0 / 8) / 2) << "one of two epochs";
  EXPECT_EQ(of(1, "seconds") * rows.at(1).at("updates_per_second").get<double>(), 1.0);
  // The start of the round on a worker; one of each of two workers in one process.
  EXPECT_EQ(of(4, "outer_bytes"), 2 * of(3, "outer_bytes"));
  EXPECT_GT(of(4, "memory_bytes"), 2 * of(3, "memory_bytes")) << "this process has the shard";
  EXPECT_FALSE(rows.at(5).contains("rounds"));
}

TEST(PlanOfRounds, TrainsThemForTheTimeToATarget) {
  PlanOptions options =
      plan_with_rounds({"local-sgd:post-local:2{local-from=1}",
                        "parameter-server:async+displacement:delayed-nesterov:2:2"});
  options.time_to_target = true;
  options.target_accuracy = 0.0;
  std::string text;
  const nlohmann::json rows = rows_of(options, text);
  for (const nlohmann::json& row : rows) {
    EXPECT_TRUE(row.at("time_to_target").contains("virtual_seconds")) << row;
  }
}

TEST(PlanOfRounds, RefusesARunWithoutARound) {
  const auto error_of = [](const std::string& word) {
    std::ostringstream out;
    return message_of<UsageError>([&] { run_plan(plan_with_rounds({word}), out); });
  };
  EXPECT_TRUE(contains(error_of("local-sgd:post-local:8"), "local-sgd:post-local:8: --outer",
                       "requires --local-from EPOCH"));
  EXPECT_TRUE(contains(error_of("local-sgd:post-local:8{local-from=2}"),
                       "a run of --epochs 2 ends before its first round"));
  EXPECT_TRUE(contains(error_of("parameter-server:async+displacement:post-local:8"),
                       "--push displacement"));
  for (const char* word : {"local-sgd:average:8{local-from=1}", "mirrored{local-from=1}"}) {
    EXPECT_TRUE(contains(error_of(word), "--local-from 1: not applicable to")) << word;
  }
  EXPECT_TRUE(contains(error_of("local-sgd:diloco:8{outer-learning-rate=0.5}"),
                       "flags of train in braces require --time-to-target, except local-from"));
}

}  // namespace
}  // namespace syncopate::bench
