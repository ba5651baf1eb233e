// Tests replicas of one process that push displacements to one copy of the variables.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <latch>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "models/base/errors.h"
#include "strategies/asynchronous_job.h"
#include "strategies/strategy.h"
#include "tests/strategies/small_training.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

using test::copy_of;
using test::kBatch;

constexpr float kInnerRate = 0.05F;

Batch batch_from(const ps::SampleRange& range) {
  return test::small_batch(static_cast<float>(range.begin % 13) / 13.0F);
}

class DisplacementPushes : public testing::Test {
 protected:
  DisplacementPushes() {
    options_.name = "central-storage";
    options_.seed = 7;
    options_.batch_size_per_replica = kBatch;
    options_.bucket_bytes = 256;
    options_.consistency.consistency = ps::Consistency::kAsync;
    options_.local = {.push = PushKind::kDisplacement, .sync_every = 4};
    options_.parameter_server.plan = {.network = "small",
                                      .dataset_size = 10 * kBatch,
                                      .batch_size = kBatch,
                                      .total_epochs = 1,
                                      .total_steps = {},
                                      .eval_every_epochs = 1,
                                      .checkpoint_every_steps = 0,
                                      .writes_checkpoints = true};
  }

  // Trains all replicas to the end of the job. Returns the number of steps that each round of each
  // replica had; a round that was ended early has its true number.
  std::vector<std::int64_t> train(Strategy& strategy) {
    strategy.begin({});
    std::vector<std::int64_t> rounds;
    std::mutex mutex;
    strategy.for_each_replica([&](Replica& replica) {
      AsynchronousJob& job = asynchronous_job(strategy, replica.index);
      std::int64_t steps = 0;
      const auto end_round = [&] {
        if (steps == 0) return;
        replica.variables->end_round_early();
        const std::lock_guard lock(mutex);
        rounds.push_back(std::exchange(steps, 0));
      };
      while (const auto lease = job.next_lease()) {
        if (*lease == ps::SampleRange{}) {
          end_round();
          continue;
        }
        before_step_(replica.index);
        ++steps;
        job.begin_step(*lease);
        if (step(replica, *lease).round_steps > 0) end_round();
      }
      end_round();
      while (const auto assignment = job.wait_assignment()) {
        status_ = assignment->status;
        job.done(*assignment);
      }
    });
    strategy.leave();
    return rounds;
  }

  StepReport step(Replica& replica, const ps::SampleRange& range) const {
    const Batch batch = batch_from(range);
    VariableStore& variables = *replica.variables;
    variables.pull({.learning_rate = rate_, .step = 1});
    const Scores scores =
        replica.model->forward(batch, [&](BucketId bucket) { variables.wait_values(bucket); });
    replica.model->backward([&](BucketId bucket) { variables.push(bucket, {.scores = scores}); });
    return variables.commit();
  }

  Graph graph_ = test::small_network();
  StrategyOptions options_;
  std::function<void(int replica)> before_step_ = [](int) {};
  float rate_ = kInnerRate;
  JobStatus status_;  // of the last assignment
};

// The values differ by roundings only: the servers compute x - (x - y) where the other worker
// computes y.
TEST_F(DisplacementPushes, OfOneStepAndOneWorkerEqualGradientsWithinFourUlps) {
  options_.local.sync_every = 1;
  options_.parameter_server.plan.total_steps = 1;
  const auto displaced = make_strategy(options_, graph_);
  const std::vector<float> before = [&] {
    const auto values = displaced->snapshot().values.f32();
    return std::vector<float>(values.begin(), values.end());
  }();
  train(*displaced);
  options_.local = {};
  const auto plain = make_strategy(options_, graph_);
  train(*plain);
  const std::span<const float> found = displaced->snapshot().values.f32();
  const std::span<const float> expected = plain->snapshot().values.f32();
  std::size_t changed = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const float larger = std::max(std::abs(before[i]), std::abs(expected[i]));
    const float ulp = std::nextafter(larger, std::numeric_limits<float>::infinity()) - larger;
    ASSERT_LE(std::abs(found[i] - expected[i]), 4.0F * ulp) << "value " << i;
    changed += found[i] != before[i] ? 1 : 0;
  }
  EXPECT_GT(changed, found.size() / 4);
}

TEST_F(DisplacementPushes, WithARateOfZeroDoNotMoveTheValues) {
  rate_ = 0.0F;
  options_.replicas = 2;
  const auto strategy = make_strategy(options_, graph_);
  const Snapshot before = copy_of(strategy->snapshot());
  train(*strategy);
  EXPECT_TRUE(std::ranges::equal(strategy->snapshot().values.f32(), before.values.f32()));
}

TEST_F(DisplacementPushes, ThatAreNotFiniteDoNotReachTheShard) {
  options_.local.sync_every = 1;
  rate_ = std::numeric_limits<float>::infinity();
  const auto strategy = make_strategy(options_, graph_);
  const Snapshot before = copy_of(strategy->snapshot());
  strategy->begin({});
  AsynchronousJob& job = asynchronous_job(*strategy, 0);
  const auto lease = job.next_lease();
  ASSERT_TRUE(lease.has_value());
  job.begin_step(*lease);
  EXPECT_TRUE(std::isnan(step(strategy->replicas().front(), *lease).scores.loss));
  EXPECT_TRUE(std::ranges::equal(strategy->snapshot().values.f32(), before.values.f32()));
}

TEST_F(DisplacementPushes, HaveTheStepsOfTheirRoundAndThoseLeftAtTheEnd) {
  const auto strategy = make_strategy(options_, graph_);
  EXPECT_EQ(train(*strategy), (std::vector<std::int64_t>{4, 4, 2}));
  EXPECT_EQ(status_.step, 10);
  EXPECT_EQ(status_.samples, 10 * kBatch);
}

// Each replica holds a part of the data that it has trained but not pushed. Without an early end of
// both rounds, the two would wait for each other.
TEST_F(DisplacementPushes, EndTheDataIfAllReplicasAreWithinARound) {
  options_.local.sync_every = 1000;
  options_.replicas = 3;
  for (const auto consistency :
       {ps::Consistency::kAsync, ps::Consistency::kSsp, ps::Consistency::kQuorum}) {
    options_.consistency.consistency = consistency;
    const auto strategy = make_strategy(options_, graph_);
    const std::vector<std::int64_t> rounds = train(*strategy);
    std::int64_t steps = 0;
    for (const std::int64_t round : rounds) steps += round;
    EXPECT_EQ(steps, 10);
    EXPECT_EQ(status_.samples, 10 * kBatch);
  }
}

// Replica 2 trains its first step when the others have received the values of two merges.
TEST_F(DisplacementPushes, DoNotWaitForASlowWorkerBeyondTheGrace) {
  options_.local.sync_every = 1;
  options_.replicas = 3;
  options_.consistency = {.consistency = ps::Consistency::kQuorum, .quorum = 2, .grace = 0.001};
  std::latch merged(2);
  std::vector<int> steps(3);
  before_step_ = [&](int replica) {
    if (replica == 2) return merged.wait();
    if (++steps[static_cast<std::size_t>(replica)] == 3) merged.count_down();
  };
  const auto strategy = make_strategy(options_, graph_);
  EXPECT_EQ(train(*strategy).size(), 10U);
  EXPECT_EQ(status_.samples, 10 * kBatch);
}

TEST_F(DisplacementPushes, DivideTheDefaultRateByTheNumberOfWorkers) {
  options_.replicas = 4;
  EXPECT_EQ(shard_outer_options(options_).learning_rate, 0.25);
  options_.consistency.consistency = ps::Consistency::kQuorum;
  EXPECT_EQ(shard_outer_options(options_).learning_rate, 1.0) << "the displacement is a mean";
  options_.consistency.consistency = ps::Consistency::kAsync;
  options_.local.outer = "delayed-nesterov:4";
  EXPECT_EQ(shard_outer_options(options_).learning_rate, 0.7) << "it divides by its own number";
  options_.local = {.push = PushKind::kDisplacement, .outer_learning_rate = 0.6};
  EXPECT_EQ(shard_outer_options(options_).learning_rate, 0.6);
}

// The slots of the workers' own optimizers are in no snapshot.
TEST_F(DisplacementPushes, LeaveTheInnerOptimizerToTheWorkers) {
  options_.optimizer.name = "adam";
  const auto strategy = make_strategy(options_, graph_);
  EXPECT_TRUE(strategy->snapshot().slots.empty());
  options_.local.outer_momentum = 0.5;
  const auto with_momentum = make_strategy(options_, graph_);
  train(*with_momentum);
  const Snapshot last = with_momentum->snapshot();
  ASSERT_EQ(last.slots.size(), 1U);
  EXPECT_EQ(last.slots.front().name, kOuterMomentumSlot);
}

TEST_F(DisplacementPushes, AreRefusedWithOptionsForGradients) {
  const auto refusal_with = [&](const auto& change) {
    StrategyOptions options = options_;
    change(options);
    return message_if_thrown<UsageError>([&] { (void)make_strategy(options, graph_); });
  };
  EXPECT_EQ(refusal_with([](StrategyOptions&) {}), "");
  EXPECT_TRUE(contains(refusal_with([](StrategyOptions& o) { o.local.sync_every = 0; }),
                       "--push displacement requires --sync-every N"));
  EXPECT_TRUE(
      contains(refusal_with([](StrategyOptions& o) { o.local.inner_state = InnerState::kAverage; }),
               "--inner-state average"));
  EXPECT_TRUE(contains(refusal_with([](StrategyOptions& o) { o.local.outer = "slowmo"; }),
                       "--outer slowmo: under --push displacement"));
  EXPECT_TRUE(contains(refusal_with([](StrategyOptions& o) {
                         o.consistency.staleness_rule = ps::StalenessRule::kInverse;
                       }),
                       "--staleness-rule inverse"));
  EXPECT_TRUE(contains(refusal_with([](StrategyOptions& o) {
                         o.consistency.consistency = ps::Consistency::kQuorum;
                         o.local.outer = "delayed-nesterov:4";
                       }),
                       "under --consistency quorum choose --outer diloco"));
}

}  // namespace
}  // namespace syncopate
