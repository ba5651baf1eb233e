// Tests --strategy local-sgd in one process. tests/end_to_end/local_sgd_test.cc compares it with
// local-sgd in several processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "models/base/errors.h"
#include "models/optim/outer_rule.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/train/local_sgd_case.h"

namespace syncopate {
namespace {

TEST(LocalSgd, OfOneReplicaIsOneDeviceBitForBit) {
  for (const char* optimizer : {"sgd", "momentum", "adam"}) {
    for (const bool has_dropout : {false, true}) {
      for (const int parts : {1, 2}) {
        Training setup{.optimizer = optimizer,
                       .micro_batches = parts,
                       .has_dropout = has_dropout,
                       .has_batch_norm = true,
                       .clip_norm = 0.5};
        setup.strategy = "one-device";
        const Values expected = LocalRun(setup).train(7).values();
        setup.strategy = "local-sgd";
        for (const std::int64_t sync_every : {1, 3, 64}) {
          setup.local.sync_every = sync_every;
          EXPECT_EQ(LocalRun(setup).train(7).values(), expected)
              << optimizer << ", dropout " << has_dropout << ", parts " << parts << ", H "
              << sync_every;
        }
      }
    }
  }
}

TEST(LocalSgd, ExchangesAfterExactlyAsManyStepsAsAskedFor) {
  LocalRun run({.replicas = 2});
  for (const std::int64_t expected : {0, 0, 3, 0, 0, 3}) {
    EXPECT_EQ(run.step().round_steps, expected);
    EXPECT_EQ(run.all_hold_equal_values(), expected != 0);
  }
  EXPECT_EQ(run.step(true).round_steps, 1) << "the last round has the steps that are left";
  EXPECT_TRUE(run.all_hold_equal_values());
}

TEST(LocalSgd, ReportsTheSumsOfTheWholeRound) {
  LocalRun run({.replicas = 2});
  run.step();
  EXPECT_EQ(run.step().scores.num_samples, 12) << "of one step of this task";
  EXPECT_EQ(run.step().scores.num_samples, 36);
}

// Each worker alone: its own share, divided by its own samples, with its own momentum. The outer
// step is computed here in double precision.
TEST(LocalSgd, IsWhatEachWorkerDoesAloneAndAnOuterStep) {
  // The second replica has the smaller share of 7 samples: 3.
  const Training setup{.replicas = 2,
                       .local = {.sync_every = 3, .outer = "diloco"},
                       .optimizer = "momentum",
                       .learning_rate = 0.02F,
                       .global_batch = 7};
  LocalRun run(setup);
  Training alone = setup;
  alone.strategy = "one-device";
  alone.replicas = 1;
  std::vector<std::unique_ptr<LocalRun>> workers(2);
  for (auto& worker : workers) worker = std::make_unique<LocalRun>(alone);
  const auto input =
      make_batch_source(*data().train, {.batch_size = setup.global_batch, .seed = 5});
  const Values first = run.values();
  std::vector<double> x(first.begin(), first.end());
  std::vector<double> v(x.size());
  std::int64_t step = 0;
  for (int round = 0; round < 4; ++round) {
    for (const auto& worker : workers) {
      Replica& replica = worker->strategy().replicas().front();
      std::ranges::copy(x, replica.arena->values().f32().begin());
      replica.arena->bump_all_versions();
    }
    for (int h = 0; h < 3; ++h) {
      const Batch& batch = input->next();
      ++step;
      for (int k = 0; k < 2; ++k) {
        const BatchShare share = share_of_replica(7, k, 2);
        Batch own = batch.rows(share.begin, share.end);
        own.loss_divisor = own.num_samples;
        replica_step(workers[static_cast<std::size_t>(k)]->strategy().replicas().front(), own,
                     {.learning_rate = setup.learning_rate, .step = step});
      }
      run.step();
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double mean = 4.0 / 7.0 * (x[i] - static_cast<double>(workers[0]->values()[i])) +
                          3.0 / 7.0 * (x[i] - static_cast<double>(workers[1]->values()[i]));
      v[i] = 0.9 * v[i] + mean;
      x[i] -= 0.7 * (mean + 0.9 * v[i]);
    }
    // 1e-6: the outer step is rounded to f32.
    EXPECT_LT(distance(run.values(), Values(x.begin(), x.end())), 1e-6) << "round " << round;
  }
  EXPECT_GT(distance(run.values(), first), 0.01);
}

TEST(LocalSgd, WithOneStepPerRoundIsSynchronousTraining) {
  for (const char* optimizer : {"sgd", "momentum"}) {
    Training setup{.replicas = 2, .local = {.sync_every = 1}, .optimizer = optimizer};
    LocalRun local(setup);
    setup.strategy = "mirrored";
    LocalRun synchronous(setup);
    const Values before = local.values();
    local.step();
    synchronous.step();
    for (std::size_t i = 0; i < before.size(); ++i) {
      const float larger = std::max(std::abs(before[i]), std::abs(synchronous.values()[i]));
      const float ulp = std::nextafter(larger, std::numeric_limits<float>::infinity()) - larger;
      ASSERT_NEAR(local.values()[i], synchronous.values()[i], 4 * ulp) << optimizer << " " << i;
    }
    for (int step = 2; step <= 10; ++step) {
      local.step();
      synchronous.step();
    }
    EXPECT_LT(distance(local.values(), synchronous.values()), 1e-5) << optimizer;
  }
}

TEST(LocalSgd, GivesTheBitsOfTheAverageWheneverTheNumbersAreThoseOfTheAverage) {
  Training setup{.replicas = 2};
  const Values average = LocalRun(setup).train(7).values();
  for (const char* outer : {"slowmo", "diloco"}) {
    setup.local = {.sync_every = 3, .outer = outer};
    EXPECT_NE(LocalRun(setup).train(7).values(), average) << outer;
    setup.local.outer_learning_rate = 1.0;
    setup.local.outer_momentum = 0.0;
    EXPECT_EQ(LocalRun(setup).train(7).values(), average) << outer;
  }
}

TEST(LocalSgd, MovesNothingWithoutALearningRate) {
  for (const OuterRuleRow& row : outer_rules_of_means()) {
    LocalRun run({.replicas = 3,
                  .local = with_outer(row, 2),
                  .optimizer = "momentum",
                  .learning_rate = 0.0F});
    const Values before = run.values();
    EXPECT_EQ(run.train(5).values(), before) << row.name;
  }
}

TEST(LocalSgd, HoldsOneModelAfterEveryRoundOnEveryReplica) {
  for (const OuterRuleRow& row : outer_rules_of_means()) {
    // The third replica has the share of 4 + 4 + 2 samples.
    LocalRun run({.replicas = 3,
                  .local = with_outer(row, 2),
                  .optimizer = "adam",
                  .learning_rate = 0.01F,
                  .global_batch = 10,
                  .has_batch_norm = true});
    for (int round = 0; round < 3; ++round) {
      run.step();
      EXPECT_FALSE(run.all_hold_equal_values());
      run.step();
      EXPECT_TRUE(run.all_hold_equal_values());
      for (const Replica& replica : run.strategy().replicas()) {
        EXPECT_EQ(copy_of(replica.state->values),
                  copy_of(run.strategy().replicas().front().state->values));
      }
    }
    EXPECT_NO_THROW(synchronous_job(run.strategy()).agree());
    const Snapshot snapshot = run.strategy().snapshot();
    EXPECT_EQ(copy_of(snapshot.values), run.values());
    EXPECT_EQ(snapshot.slots.size(), row.defaults.momentum > 0.0 ? 1U : 0U) << row.name;
  }
}

TEST(LocalSgd, WaitsForNoReplicaBeforeTheEndOfTheRound) {
  LocalRun run({.replicas = 2, .local = {.sync_every = 4}});
  Batch half = run.input().next().rows(0, 6);
  half.loss_divisor = 6;
  Replica& first = run.strategy().replicas()[0];
  // The second replica has not begun its first step.
  for (std::int64_t step = 1; step <= 3; ++step) {
    EXPECT_EQ(replica_step(first, half, {.learning_rate = 0.1F, .step = step}).round_steps, 0);
  }
  StepReport last;
  std::jthread waiting(
      [&] { last = replica_step(first, half, {.learning_rate = 0.1F, .step = 4}); });
  for (std::int64_t step = 1; step <= 4; ++step) {
    replica_step(run.strategy().replicas()[1], half, {.learning_rate = 0.1F, .step = step});
  }
  waiting.join();
  EXPECT_EQ(last.round_steps, 4);
  EXPECT_EQ(last.scores.num_samples, 48);
}

// The first replica ends its round early, with another learning rate than the last step of the
// second replica.
TEST(LocalSgd, ExchangesPartsOfARoundWithDifferentNumbersOfSteps) {
  for (const OuterRuleRow& row : outer_rules_of_means()) {
    LocalRun run({.replicas = 2, .local = with_outer(row, 1000)});
    const Values before = run.values();
    Batch half = run.input().next().rows(0, 6);
    half.loss_divisor = 6;
    for (int round = 0; round < 2; ++round) {
      std::vector<StepReport> reports(2);
      const std::int64_t of_first = 2 + round;
      run.strategy().for_each_replica([&](Replica& replica) {
        const std::int64_t steps = replica.index == 0 ? of_first : 5;
        for (std::int64_t step = 1; step <= steps; ++step) {
          reports[static_cast<std::size_t>(replica.index)] =
              replica_step(replica, half,
                           {.learning_rate = 0.1F / static_cast<float>(step),
                            .step = step,
                            .is_last = round == 1 && replica.index == 1 && step == steps,
                            .ends_round = step == steps});
        }
      });
      for (const StepReport& report : reports) {
        EXPECT_EQ(report.round_steps, 5) << row.name;
        EXPECT_EQ(report.scores.num_samples, (of_first + 5) * 6) << row.name;
      }
      EXPECT_TRUE(std::ranges::equal(synchronous_job(run.strategy()).steps_of_round(),
                                     std::vector<std::int64_t>{of_first, 5}));
      EXPECT_TRUE(run.all_hold_equal_values()) << row.name;
    }
    EXPECT_NO_THROW(synchronous_job(run.strategy()).agree());
    EXPECT_GT(distance(run.values(), before), 0.0);
  }
}

TEST(LocalSgd, AveragesTheReplicasOfATaskWithinARound) {
  // The third replica has the share of 4 + 4 + 2 samples.
  Training setup{.replicas = 3, .local = {.sync_every = 2}, .global_batch = 10};
  LocalRun rounds_of_two(setup);
  setup.local = {.sync_every = 6, .sync_groups = 3};
  LocalRun grouped(setup);
  for (int step = 1; step <= 12; ++step) {
    rounds_of_two.step();
    const bool is_round_end = grouped.step().round_steps > 0;
    EXPECT_EQ(is_round_end, step % 6 == 0) << step;
    EXPECT_EQ(grouped.all_hold_equal_values(), step % 2 == 0) << step;
    // 1e-6: the sums of a group begin with the values at the start of the round.
    EXPECT_LT(distance(grouped.values(), rounds_of_two.values()), 1e-6) << step;
  }
}

TEST(LocalSgd, KeepsTheOuterModelWhenAWorkerDiverges) {
  LocalRun run({.replicas = 2, .local = {.sync_every = 2, .outer = "diloco"}});
  run.step();
  run.step();
  const Values before = run.values();
  run.step();
  run.set_learning_rate(std::numeric_limits<float>::infinity());
  EXPECT_FALSE(std::isfinite(run.step().scores.loss));
  EXPECT_EQ(run.values(0), before);
  EXPECT_EQ(run.values(1), before);
}

TEST(LocalSgd, EndsAtOnceWithinARoundWhenTheJobIsAborted) {
  LocalRun run({.replicas = 2, .local = {.sync_every = 1000}});
  run.step();
  run.strategy().abort("task 1 has died");
  EXPECT_EQ(message_of<PeerError>([&] { run.step(); }), "task 1 has died");
}

std::string refusal_of(const Training& setup, const StrategyOptions& more = {}) {
  StrategyOptions options = options_of(setup);
  options.optimizer.average_decay = more.optimizer.average_decay;
  options.batch_norm = more.batch_norm;
  options.collective = more.collective;
  options.devices = more.devices;
  const Graph graph = network_of(setup);
  return message_of<UsageError>([&] { (void)make_strategy(options, graph); });
}

TEST(LocalSgd, RefusesWhatWouldNotBeTheMethod) {
  EXPECT_TRUE(contains(refusal_of({.local = {}}), "requires --sync-every N"));
  EXPECT_TRUE(contains(refusal_of({.local = {.sync_every = 2, .outer = "sum"}}), "--outer sum"));
  EXPECT_TRUE(contains(refusal_of({.local = {.sync_every = 2, .outer_nesterov = true}}),
                       "--outer-nesterov requires an outer momentum above 0"));
  EXPECT_TRUE(contains(refusal_of({.local = {.sync_every = 2, .outer_scale_by_rate = true}}),
                       "--outer-scale-by-rate requires an outer momentum above 0"));
  EXPECT_TRUE(contains(refusal_of({.local = {.sync_every = 4, .sync_groups = 2}}),
                       "--sync-groups 2: a task has one replica"));
  EXPECT_TRUE(contains(refusal_of({.replicas = 2, .local = {.sync_every = 4, .sync_groups = 3}}),
                       "--sync-groups 3: expected a divisor of --sync-every 4"));
  StrategyOptions more;
  more.optimizer.average_decay = 0.9;
  EXPECT_TRUE(contains(refusal_of({}, more), "--ema 0.9"));
  EXPECT_TRUE(
      contains(refusal_of({}, {.batch_norm = BatchNormStatistics::kSync}), "--batch-norm sync"));
  EXPECT_TRUE(contains(refusal_of({}, {.devices = {{DeviceKind::kCuda, 0}}}), "--devices cuda:0"));
  EXPECT_TRUE(contains(refusal_of({}, {.collective = "nccl"}), "takes auto, local, ring, mpi"));
}

}  // namespace
}  // namespace syncopate
