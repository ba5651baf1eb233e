// Tests the list of runs that a comparison plans.
#include "bench/compare/run_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "deploy/cli/command_line.h"
#include "models/base/errors.h"
#include "tests/bench/compare/two_variants.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "worker/run/run_sizes.h"
#include "worker/train/train_loop.h"

namespace syncopate::bench {
namespace {

// Returns the word after a flag on the `train` command line of this run.
std::string value_of(const RunSpec& run, const std::string& flag) {
  return word_after(command_line_of(run.train), flag);
}

TEST(RunPlan, HasEveryVariantOncePerSeedInTheOrderOfSeeds) {
  const auto runs = plan_runs(two_variants(), 1000);
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_EQ(runs[0].variant.label, "mirrored");
  EXPECT_EQ(runs[1].variant.label, "parameter-server:sync+backup:1");
  EXPECT_EQ(runs[1].seed, 1U);
  EXPECT_EQ(runs[2].seed, 2U);
  EXPECT_EQ(value_of(runs[2], "--seed"), "2");
  EXPECT_EQ(value_of(runs[0], "--replicas"), "4");
}

TEST(RunPlan, HasTheSameNumberOfEvaluationsForAnyBatch) {
  CompareOptions options = two_variants();
  options.variants.push_back(parse_variant("parameter-server:async", 4, 2));
  options.epochs = 2;
  EXPECT_EQ(updates_of(options, options.variants[0], 1000), 50);   // An update takes 40 samples.
  EXPECT_EQ(updates_of(options, options.variants[1], 1000), 66);   // An update takes 30 samples.
  EXPECT_EQ(updates_of(options, options.variants[2], 1000), 200);  // An update takes 10 samples.
  const auto runs = plan_runs(options, 1000);
  EXPECT_EQ(value_of(runs[0], "--eval-every-steps"), "10");
  EXPECT_EQ(value_of(runs[2], "--eval-every-steps"), "40");
  options.budget = Budget::kUpdates;
  options.updates = 70;
  EXPECT_EQ(updates_of(options, options.variants[0], 1000), 70);
  EXPECT_EQ(value_of(plan_runs(options, 1000)[0], "--steps"), "70");
}

TEST(RunPlan, DividesTheSameBatchAmongSynchronousWorkersAlone) {
  CompareOptions options = two_variants();
  options.variants = {parse_variant("one-device", 4, 2), parse_variant("mirrored", 4, 2),
                      parse_variant("parameter-server:async", 4, 2),
                      parse_variant("pipeline:8", 4, 2)};
  options.batch_size = 80;
  options.cluster.faults.service_time = {.kind = ServiceTimeKind::kConstant,
                                         .mean_milliseconds = 3.0};
  const auto runs = plan_runs(options, 1000);
  const std::vector<std::string> batches = {"80", "20", "80", "10"};
  for (std::size_t i = 0; i < batches.size(); ++i) {
    EXPECT_EQ(value_of(runs[i], "--batch-size-per-replica"), batches[i]);
    EXPECT_EQ(runs[i].learning_rate_factor, 1.0) << "all updates have the same size";
    EXPECT_DOUBLE_EQ(runs[i].faults.service_time.mean_milliseconds,
                     3.0 * std::stod(batches[i]) / 10.0)
        << "a step takes time in proportion to its samples";
    EXPECT_EQ(updates_of(options, options.variants[i], 1000),
              updates_of(options, options.variants[0], 1000));
  }
}

TEST(RunPlan, ScalesTheRateOfAVariantWithABatchOfItsOwn) {
  CompareOptions options = two_variants();
  options.variants = {parse_variant("one-device{batch-size-per-replica=40}", 4, 2),
                      parse_variant("mirrored{batch-size=80}", 4, 2)};
  options.shared = parse_shared_train_flags({"--optimizer", "sgd"});
  const auto runs = plan_runs(options, 1000);
  EXPECT_EQ(value_of(runs[0], "--batch-size-per-replica"), "40");
  EXPECT_EQ(value_of(runs[1], "--batch-size-per-replica"), "20");
  EXPECT_EQ(runs[0].learning_rate_factor, 4.0) << "40 samples, where other workers have 10";
  EXPECT_EQ(runs[1].learning_rate_factor, 8.0);
}

// An update of mirrored has 40 samples; a step of a worker with local updates has 10.
TEST(RunPlan, GivesLocalUpdatesTheirRoundsAndTheRateOfOneWorker) {
  CompareOptions options = two_variants();
  options.variants = {parse_variant("mirrored", 4, 2),
                      parse_variant("local-sgd:slowmo:8{inner-state=reset}", 4, 2)};
  options.shared = parse_shared_train_flags({"--optimizer", "sgd"});
  const auto runs = plan_runs(options, 1000);
  EXPECT_EQ(value_of(runs[1], "--sync-every"), "8");
  EXPECT_EQ(value_of(runs[1], "--outer"), "slowmo");
  EXPECT_EQ(value_of(runs[1], "--inner-state"), "reset");
  EXPECT_EQ(value_of(runs[0], "--sync-every"), "");
  EXPECT_EQ(runs[0].learning_rate_factor, 4.0);
  EXPECT_EQ(runs[1].learning_rate_factor, 1.0);
  EXPECT_EQ(runs[1].warmup_updates, 0);
  EXPECT_EQ(updates_of(options, options.variants[1], 1000),
            updates_of(options, options.variants[0], 1000));
  options.variants[1].sync_every = 51;  // two epochs have 50 steps
  EXPECT_TRUE(contains(message_of<UsageError>([&] { plan_runs(options, 1000); }),
                       "--sync-every 51: the whole run has 50 steps"));
}

// The control trains 40 samples per step, as the four workers do together.
TEST(RunPlan, ControlsAnOuterOptimizerByOneWorkerWithTheBatchOfAll) {
  CompareOptions options = two_variants();
  options.variants = {parse_variant("local-sgd:diloco:8{outer-learning-rate=0.5}", 4, 2)};
  const auto control = control_of(options, options.variants.front());
  ASSERT_TRUE(control);
  options.variants.push_back(*control);
  const auto runs = plan_runs(options, 1000);
  EXPECT_EQ(runs[1].variant.label, "local-sgd:diloco:8{outer-learning-rate=0.5}, one worker");
  EXPECT_EQ(runs[1].variant.workers, 1);
  for (const char* flag : {"--sync-every", "--outer", "--outer-learning-rate"}) {
    EXPECT_EQ(value_of(runs[1], flag), value_of(runs[0], flag));
  }
  EXPECT_EQ(value_of(runs[1], "--batch-size-per-replica"), "40");
  EXPECT_EQ(updates_of(options, options.variants[1], 1000),
            updates_of(options, options.variants[0], 1000));
  options.batch_size = 80;  // with --same batch, too
  EXPECT_EQ(control_of(options, options.variants.front())->worker_batch, 80);
}

TEST(RunPlan, HasAControlThatWaitsForItsOneWorker) {
  CompareOptions options = two_variants();
  const Variant merging = parse_variant("parameter-server:quorum:2+displacement:diloco:8", 4, 2);
  EXPECT_EQ(control_of(options, merging)->consistency.quorum, 0);
}

TEST(RunPlan, HasNoControlOfThePlainAverageOrOfOneWorker) {
  CompareOptions options = two_variants();
  EXPECT_FALSE(control_of(options, parse_variant("mirrored", 4, 2)));
  EXPECT_FALSE(control_of(options, parse_variant("local-sgd:average:8", 4, 2)));
  EXPECT_FALSE(control_of(options, parse_variant("local-sgd:diloco:8", 1, 2)));
  EXPECT_TRUE(control_of(options, parse_variant("local-sgd:average:8{outer-momentum=0.5}", 4, 2)));
  const std::string wrong = "local-sgd:average:8{outer-nesterov}";
  EXPECT_TRUE(
      contains(message_of<UsageError>([&] { control_of(options, parse_variant(wrong, 4, 2)); }),
               "--outer-nesterov requires an outer momentum above 0"));
}

TEST(RunPlan, TrainsForTheGivenTime) {
  CompareOptions options = two_variants();
  options.budget = Budget::kSeconds;
  options.seconds = 0.1;
  for (const RunSpec& run : plan_runs(options, 1000)) {
    EXPECT_EQ(value_of(run, "--max-seconds"), "0.1");
    // A run of limited time has as many evaluations per --epochs as a run of these epochs.
    EXPECT_EQ(value_of(run, "--eval-every-steps"),
              std::to_string(updates_of(options, run.variant, 1000) / options.evaluations));
  }
}

// Evaluations during training would slow down the training of some variants only, so runs evaluate
// afterwards.
TEST(RunPlan, EvaluatesAfterTrainingUnderTheRealClock) {
  CompareOptions options = two_variants();
  for (const RunSpec& run : plan_runs(options, 1000)) {
    EXPECT_EQ(value_of(run, "--eval-when"), "end") << run.variant.label;
  }
  options.clock = Clock::kVirtual;
  for (const RunSpec& run : plan_runs(options, 1000)) {
    EXPECT_EQ(value_of(run, "--eval-when"), "due");
  }
}

TEST(RunPlan, LeavesOutFaultsOfWorkersThatAVariantDoesNotHave) {
  CompareOptions options = two_variants();
  options.variants.front() = parse_variant("one-device", 4, 2);
  options.cluster.faults = {.service_time = parse_service_time("constant:1", "--service-time"),
                            .slow = {{.worker = 3, .factor = 4.0}},
                            .pauses = {{.worker = 9, .at_seconds = 1.0, .for_seconds = 1.0}}};
  const auto runs = plan_runs(options, 1000);
  EXPECT_EQ(value_of(runs[0], "--slow"), "") << "one device";
  EXPECT_EQ(value_of(runs[1], "--slow"), "worker=3,factor=4") << "four workers";
  EXPECT_EQ(value_of(runs[1], "--pause"), "");
  EXPECT_EQ(value_of(runs[0], "--service-time"), "constant:1");
}

TEST(RunPlan, HasTheFaultsOfWorkersAndLinksThatAVariantHas) {
  CompareOptions options = two_variants();
  options.variants.push_back(parse_variant("one-device", 4, 2));
  options.cluster.flags =
      as_words("--kill worker=2,at=1,restart=1 --kill worker=0,at=2 --link-delay 1ms");
  options.cluster.faults.kills = {{.worker = 2, .at_seconds = 1.0, .restart_seconds = 1.0},
                                  {.worker = 0, .at_seconds = 2.0}};
  options.cluster.faults.link = {.delay_seconds = 1e-3};
  const auto runs = plan_runs(options, 1000);
  EXPECT_EQ(runs[0].faults.kills.size(), 2U) << "mirrored has four workers";
  EXPECT_TRUE(runs[0].faults.link.is_plain()) << "and is one process";
  EXPECT_FALSE(runs[1].faults.link.is_plain());
  EXPECT_EQ(value_of(runs[1], "--link-delay"), "0.001") << "seconds";
  EXPECT_EQ(value_of(runs[1], "--kill"), "") << "train does not kill itself";
  ASSERT_EQ(runs[2].faults.kills.size(), 1U);
  EXPECT_EQ(runs[2].faults.kills[0].worker, 0);
  EXPECT_EQ(runs[2].fault_flags, (Words{"--kill", "worker=0,at=2"}));
  options.clock = Clock::kVirtual;
  EXPECT_EQ(value_of(plan_runs(options, 1000)[1], "--link-delay"), "");
}

// Returns options with a variant for each size of an update: 40, 30 and 10 samples.
CompareOptions three_sizes(const Words& train_flags) {
  CompareOptions options = two_variants();
  options.variants.push_back(parse_variant("parameter-server:async", 4, 2));
  options.shared = parse_shared_train_flags(train_flags);
  return options;
}

// Returns the rate at which train would run this plan after the warm-up.
double rate_of(const RunSpec& run) {
  const int replicas = expected_replicas(run.train);
  return schedule_of(run.train, replicas, 10 * replicas, 1000).learning_rate;
}

TEST(RunPlan, ScalesTheRateOfGradientDescentLinearlyWithTheSamplesOfAnUpdate) {
  for (const char* optimizer : {"sgd", "momentum"}) {
    CompareOptions options = three_sizes({"--optimizer", optimizer});
    options.epochs = 90;
    const auto runs = plan_runs(options, 1000);
    const double factors[] = {4.0, 3.0, 1.0};  // mirrored, one backup worker, async
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_DOUBLE_EQ(rate_of(runs[i]), 0.01 * factors[i]) << runs[i].variant.label;
      EXPECT_EQ(runs[i].learning_rate_rule, "linear");
      EXPECT_DOUBLE_EQ(runs[i].learning_rate_factor, factors[i]);
      EXPECT_EQ(runs[i].train.schedule.learning_rate, 0.01) << "the rate as given";
      EXPECT_TRUE(runs[i].notes.empty());
    }
    EXPECT_EQ(value_of(runs[0], "--warmup-epochs"), "0.8") << "20 of 25 updates";
    EXPECT_EQ(value_of(runs[1], "--learning-rate-scale"), "linear");
    EXPECT_EQ(value_of(runs[2], "--learning-rate-scale"), "none");
    EXPECT_EQ(value_of(runs[2], "--warmup-epochs"), "0");
  }
}

TEST(RunPlan, ScalesTheRateOfAdamWithTheSquareRoot) {
  for (const Words& flags : {Words{}, Words{"--optimizer", "adamw"}}) {
    const auto runs = plan_runs(three_sizes(flags), 1000);
    EXPECT_DOUBLE_EQ(rate_of(runs[0]), 0.001 * 2.0);
    EXPECT_DOUBLE_EQ(rate_of(runs[2]), 0.001);
    EXPECT_EQ(runs[0].learning_rate_rule, "sqrt");
  }
}

// Returns the number of updates before train, given the flags of this run, has the full learning
// rate. Batches have 10 samples.
std::int64_t updates_before_the_full_rate(const RunSpec& run, std::int64_t train_samples) {
  const CommandOptions parsed = parse_train(command_line_of(run.train), environment_of(run));
  const auto& train = std::get<TrainOptions>(parsed);
  const int replicas = expected_replicas(train);
  const std::int64_t step = 10 * replicas;
  const std::int64_t per_epoch = train_samples / step * step;
  const ScheduleOptions options = schedule_of(train, replicas, step, train_samples / step);
  const Schedule schedule(options);
  const auto rate_before = [&](std::int64_t updates) {
    const std::int64_t samples = updates * samples_per_update(train, step);
    return schedule.learning_rate(
        epochs_at({.epoch = samples / per_epoch, .offset = samples % per_epoch, .untrained = {}},
                  train_samples, step));
  };
  std::int64_t updates = 0;
  while (rate_before(updates) < options.learning_rate) ++updates;
  return updates;
}

TEST(RunPlan, WarmsUpOverTwentyUpdatesOfAnyVariantAndBudget) {
  CompareOptions options = three_sizes({"--reference-batch-size=5"});  // scales async, too
  options.epochs = 7;
  for (const std::int64_t samples : {1000, 1009, 9999}) {
    for (const Budget budget : {Budget::kSamples, Budget::kUpdates, Budget::kSeconds}) {
      options.budget = budget;
      options.updates = 230;
      options.seconds = 60.0;
      for (const RunSpec& run : plan_runs(options, samples)) {
        EXPECT_EQ(run.warmup_updates, 20) << run.variant.label;
        EXPECT_EQ(updates_before_the_full_rate(run, samples), 20)
            << run.variant.label << ", " << samples << " samples";
      }
    }
  }
}

TEST(RunPlan, WarmsUpForHalfOfAShortRun) {
  CompareOptions options = three_sizes({});
  options.budget = Budget::kUpdates;
  for (const auto& [updates, of_warmup] : {std::pair(41, 20), {39, 19}, {4, 2}, {1, 0}}) {
    options.updates = updates;
    const RunSpec run = plan_runs(options, 1000).front();
    EXPECT_EQ(run.warmup_updates, of_warmup) << updates;
    EXPECT_EQ(updates_before_the_full_rate(run, 1000), of_warmup) << updates;
  }
}

TEST(RunPlan, ScalesAndWarmsUpAsTheUserSays) {
  const auto none = plan_runs(three_sizes({"--learning-rate-scale", "none"}), 1000);
  EXPECT_DOUBLE_EQ(rate_of(none[0]), 0.001);
  EXPECT_EQ(none[0].learning_rate_rule, "none");
  EXPECT_EQ(value_of(none[0], "--warmup-epochs"), "0");
  const auto linear =
      plan_runs(three_sizes({"--learning-rate-scale=linear", "--warmup-epochs", "0.5"}), 1000);
  EXPECT_DOUBLE_EQ(rate_of(linear[0]), 0.004) << "adam";
  EXPECT_EQ(value_of(linear[0], "--warmup-epochs"), "0.5");
  EXPECT_EQ(value_of(linear[2], "--warmup-epochs"), "0.5");
  EXPECT_EQ(linear[0].warmup_updates, 13) << "half of 25 updates";
  EXPECT_EQ(linear[2].warmup_updates, 50);
  const auto reference =
      plan_runs(three_sizes({"--optimizer", "sgd", "--reference-batch-size", "5"}), 1000);
  EXPECT_DOUBLE_EQ(reference[1].learning_rate_factor, 6.0);
  EXPECT_DOUBLE_EQ(rate_of(reference[2]), 0.02) << "async";
  EXPECT_EQ(reference[2].refusal, "");
}

TEST(RunPlan, LeavesARateInBracesAsItIs) {
  CompareOptions options = three_sizes({"--optimizer", "sgd"});
  options.variants[0] = parse_variant("mirrored{learning-rate=0.5}", 4, 2);
  options.variants[1] = parse_variant("mirrored{learning-rate=0.5,learning-rate-scale=sqrt}", 4, 2);
  options.variants.push_back(parse_variant("mirrored{optimizer=adam}", 4, 2));
  options.variants.push_back(parse_variant("one-device{threads=3}", 4, 2));
  const auto runs = plan_runs(options, 1000);
  EXPECT_DOUBLE_EQ(rate_of(runs[0]), 0.5);
  EXPECT_EQ(value_of(runs[0], "--warmup-epochs"), "0");
  EXPECT_EQ(runs[0].learning_rate_rule, "given");
  EXPECT_DOUBLE_EQ(rate_of(runs[1]), 1.0);
  EXPECT_EQ(runs[1].learning_rate_rule, "given");
  EXPECT_EQ(runs[2].learning_rate_rule, "linear");
  EXPECT_DOUBLE_EQ(rate_of(runs[3]), 0.002) << "the default rate of adam, by the square root";
  EXPECT_EQ(value_of(runs[4], "--threads"), "3");
  EXPECT_EQ(value_of(runs[0], "--threads"), "1");
}

TEST(RunPlan, RefusesAFlagInBracesThatTheVariantIgnores) {
  CompareOptions options = two_variants();
  options.variants[0] = parse_variant("mirrored{compress=bf16}", 4, 2);
  EXPECT_TRUE(
      contains(plan_runs(options, 1000)[0].refusal, "not applicable to mirrored{compress=bf16}"));
  options.variants[0] = parse_variant("mirrored{learning-rate=-1}", 4, 2);
  const std::string error = message_of<UsageError>([&] { plan_runs(options, 1000); });
  EXPECT_EQ(error.rfind("mirrored{learning-rate=-1}: --learning-rate -1", 0), 0U) << error;
}

TEST(RunPlan, RefusesVariantsThatCannotBeCompared) {
  CompareOptions twice = two_variants();
  twice.variants.push_back(twice.variants.front());
  EXPECT_THROW(plan_runs(twice, 1000), UsageError);
  EXPECT_THROW(plan_runs(two_variants(), 20), UsageError) << "fewer samples than a step";
  CompareOptions only_backups = two_variants();
  only_backups.variants.back().workers = 1;
  EXPECT_THROW(plan_runs(only_backups, 1000), UsageError) << "all workers are backups";
  CompareOptions alike = two_variants();
  alike.variants = {parse_variant("mirrored{init-from=a/b}", 4, 2),
                    parse_variant("mirrored{init-from=a=b}", 4, 2)};
  EXPECT_THROW(plan_runs(alike, 1000), UsageError) << "their files would have the same names";
}

// Under the virtual clock, compare runs the options that train parses from the run's command line.
TEST(RunSpec, IsUnchangedAfterItsCommandLineIsParsed) {
  CompareOptions options = two_variants();
  options.shared = parse_shared_train_flags(as_words(
      "--optimizer momentum --nesterov --lr-schedule step --lr-milestones 1,2.5 --weight-decay "
      "1e-4 --augment crop-flip --bucket-mb 2 --rendezvous-timeout 30"));  // train would choose
                                                                           // another timeout
  options.cluster.faults = {
      .service_time = parse_service_time("lognormal:2:0.25", "--service-time"),
      .pauses = {{.worker = 0, .at_seconds = 0.1, .for_seconds = 2.0}}};
  options.budget = Budget::kSeconds;
  options.seconds = 1.5;
  const RunSpec run = plan_runs(options, 1000).front();
  const std::vector<std::string> words = command_line_of(run.train);
  const CommandOptions parsed = parse_train(words, Environment(Environment::Variables{}));
  EXPECT_EQ(command_line_of(std::get<TrainOptions>(parsed)), [&] {
    Words with_cache = words;  // Without --cache-dir, train chooses a folder.
    const std::string folder = std::get<TrainOptions>(parsed).cache_dir.string();
    const auto behind = std::ranges::find(with_cache, "--seed");
    with_cache.insert(behind, {"--cache-dir", folder});
    return with_cache;
  }());
}

TEST(RunPlan, OfAPipelineHasAsManySamplesPerStepAsReplicas) {
  CompareOptions options = three_sizes({"--optimizer", "sgd"});
  options.variants = {parse_variant("mirrored", 3, 0), parse_variant("pipeline", 3, 0),
                      parse_variant("pipeline:12", 3, 0)};
  const auto runs = plan_runs(options, 1200);
  EXPECT_EQ(updates_of(options, options.variants[1], 1200),
            updates_of(options, options.variants[0], 1200));
  EXPECT_EQ(updates_of(options, options.variants[2], 1200),
            updates_of(options, options.variants[0], 1200) / 4);
  EXPECT_EQ(value_of(runs[1], "--stages"), "3");
  EXPECT_EQ(value_of(runs[1], "--accumulate"), "3");
  EXPECT_EQ(value_of(runs[1], "--replicas"), "1");
  EXPECT_EQ(runs[1].train.cluster.world_size, 3);
  for (const RunSpec& run : runs) {
    EXPECT_NO_THROW(parse_train(command_line_of(run.train), environment_of(run)))
        << run.variant.label;
  }
  EXPECT_DOUBLE_EQ(runs[1].learning_rate_factor, runs[0].learning_rate_factor);
  EXPECT_DOUBLE_EQ(runs[2].learning_rate_factor, 12.0);
  const auto& train = runs[1].train;
  EXPECT_DOUBLE_EQ(schedule_of(train, 1, 30, 40).learning_rate, 0.01 * 3);
  EXPECT_EQ(value_of(runs[1], "--warmup-epochs"), "0.5") << "20 of 40 updates";
}

// A real step would sleep once, whatever its number of micro-batches.
TEST(RunPlan, DelaysNoStepsOfAPipelineOnTheRealClock) {
  for (const Words& fault : {Words{"--service-time", "constant:5"},
                             {"--slow", "worker=1,factor=2"},
                             {"--pause", "worker=1,at=1s,for=1s"}}) {
    CompareOptions options = two_variants();
    options.cluster.flags = fault;
    EXPECT_NO_THROW(plan_runs(options, 1000));
    options.variants.push_back(parse_variant("pipeline:4", 2, 0));
    EXPECT_THROW(plan_runs(options, 1000), UsageError) << fault.front();
    options.clock = Clock::kVirtual;
    EXPECT_NO_THROW(plan_runs(options, 1000));
  }
  CompareOptions slow_link = two_variants();
  slow_link.variants.push_back(parse_variant("pipeline:4", 2, 0));
  slow_link.cluster.flags = {"--link-delay", "1ms"};
  EXPECT_NO_THROW(plan_runs(slow_link, 1000));
}

TEST(RunPlan, HasScaledRatesThatTrainAccepts) {
  for (const Words& flags :
       {Words{}, Words{"--learning-rate-scale=linear"}, Words{"--reference-batch-size=5"}}) {
    for (const RunSpec& run : plan_runs(three_sizes(flags), 1000)) {
      EXPECT_NO_THROW(parse_train(command_line_of(run.train), environment_of(run)))
          << run.variant.label;
    }
  }
}

TEST(Threads, AreOnePerWorkerByDefault) {
  CompareOptions options;
  EXPECT_EQ(threads_per_worker(options), 1);
  options.shared =
      parse_shared_train_flags({"--threads=2", "--optimizer", "sgd", "--threads", "3"});
  EXPECT_EQ(threads_per_worker(options), 3);
}

}  // namespace
}  // namespace syncopate::bench
