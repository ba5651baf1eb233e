// Tests asynchronous replicas of one process that update one copy of the variables.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <span>
#include <stdexcept>
#include <vector>

#include "models/base/errors.h"
#include "strategies/asynchronous_job.h"
#include "strategies/strategy.h"
#include "tests/strategies/small_training.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

using test::copy_of;
using test::kBatch;
using test::same_blocks;
using test::small_network;

constexpr float kLearningRate = 0.05F;

// Returns a batch whose content depends on its range of samples.
Batch batch_of(const ps::SampleRange& range) {
  Batch batch = test::small_batch(static_cast<float>(range.begin % 13) / 13.0F);
  for (std::int64_t i = 0; i < kBatch; ++i) {
    batch.target.i32()[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>((range.begin + i) % 5);
  }
  return batch;
}

void step(
    Replica& replica, const ps::SampleRange& range, std::int64_t number,
    const std::function<void()>& before_push = [] {}) {
  const Batch batch = batch_of(range);
  VariableStore& variables = *replica.variables;
  variables.pull({.learning_rate = kLearningRate, .step = number});
  const Scores scores =
      replica.model->forward(batch, [&](BucketId bucket) { variables.wait_values(bucket); });
  before_push();
  replica.model->backward([&](BucketId bucket) { variables.push(bucket, {.scores = scores}); });
  variables.commit();
}

struct Rule {
  const char* name;
  ps::ConsistencyOptions options;
  friend std::ostream& operator<<(std::ostream& out, const Rule& rule) { return out << rule.name; }
};

struct TakenSnapshot {
  Assignment assignment;
  Snapshot copy;
};

class AsynchronousCentralStorage : public testing::Test {
 protected:
  AsynchronousCentralStorage() {
    options_.name = "central-storage";
    options_.seed = 7;
    options_.batch_size_per_replica = kBatch;
    options_.bucket_bytes = 256;
    options_.optimizer.name = "adam";
    options_.parameter_server.plan = {.network = "small",
                                      .dataset_size = 10 * kBatch,
                                      .batch_size = kBatch,
                                      .total_epochs = 2,
                                      .total_steps = {},
                                      .eval_every_epochs = 1,
                                      .checkpoint_every_steps = 0,
                                      .writes_checkpoints = true};
  }

  std::unique_ptr<Strategy> make(int replicas, ps::ConsistencyOptions consistency) {
    options_.replicas = replicas;
    options_.consistency = consistency;
    return make_strategy(options_, graph_);
  }

  // Trains all replicas to the end of the job. Returns the snapshots of all assignments.
  std::vector<TakenSnapshot> train(Strategy& strategy) {
    std::vector<TakenSnapshot> taken;
    std::mutex mutex;
    strategy.for_each_replica([&](Replica& replica) {
      AsynchronousJob& job = asynchronous_job(strategy, replica.index);
      const auto carry_out = [&](const Assignment& assignment) {
        {
          const std::lock_guard lock(mutex);
          taken.push_back({assignment, copy_of(job.read_snapshot(assignment, true))});
        }
        job.done(assignment);
      };
      while (const auto lease = job.next_lease()) {
        before_step(replica, *lease);
        job.begin_step(*lease);
        step(replica, *lease, 1, [&] { before_push(replica, *lease); });
        if (const auto assignment = job.next_assignment()) carry_out(*assignment);
      }
      while (const auto assignment = job.wait_assignment()) carry_out(*assignment);
    });
    strategy.leave();
    return taken;
  }

  Graph graph_ = small_network();
  StrategyOptions options_;
  std::function<void(Replica&, const ps::SampleRange&)> before_step = [](auto&&...) {};
  std::function<void(Replica&, const ps::SampleRange&)> before_push = [](auto&&...) {};
};

class OneReplica : public AsynchronousCentralStorage, public testing::WithParamInterface<Rule> {};

TEST_P(OneReplica, EqualsOneDeviceBitForBitAtEverySnapshot) {
  StrategyOptions alone = options_;
  alone.name = "one-device";
  const auto one_device = make_strategy(alone, graph_);
  std::map<std::int64_t, Snapshot> after;
  for (std::int64_t number = 1; number <= 20; ++number) {
    const std::int64_t begin = (number - 1) % 10 * kBatch;
    step(one_device->replicas().front(), {(number - 1) / 10, begin, begin + kBatch}, number);
    after[number] = copy_of(one_device->snapshot());
  }

  const auto central = make(1, GetParam().options);
  ASSERT_FALSE(is_synchronous(*central));
  central->begin({});
  const std::vector<TakenSnapshot> taken = train(*central);
  ASSERT_EQ(taken.size(), 2U);
  for (const TakenSnapshot& each : taken) {
    EXPECT_TRUE(same_blocks(each.copy, after.at(each.assignment.status.step)))
        << "step " << each.assignment.status.step;
  }
  EXPECT_EQ(taken.back().assignment.status.step, 20);
  EXPECT_TRUE(taken.back().assignment.is_final);
  EXPECT_TRUE(same_blocks(copy_of(central->snapshot()), after.at(20)));
}

const Rule kAsync{"async", {.consistency = ps::Consistency::kAsync}};
const Rule kCompensated{"async, dc",
                        {.consistency = ps::Consistency::kAsync,
                         .staleness_rule = ps::StalenessRule::kDelayCompensation}};
const Rule kAdaptive{"async, dc-adaptive",
                     {.consistency = ps::Consistency::kAsync,
                      .staleness_rule = ps::StalenessRule::kDelayCompensationAdaptive}};
const Rule kSsp0{"ssp:0", {.consistency = ps::Consistency::kSsp}};
const Rule kSsp2{"ssp:2", {.consistency = ps::Consistency::kSsp, .max_staleness = 2}};
const Rule kFresh{
    "async, ringmaster:1",
    {.consistency = ps::Consistency::kAsync, .staleness_rule = ps::StalenessRule::kRingmaster}};
const Rule kRingmaster{"async, ringmaster:2",
                       {.consistency = ps::Consistency::kAsync,
                        .staleness_rule = ps::StalenessRule::kRingmaster,
                        .rule_number = 2}};
// In the middle of the two epochs of 10 batches, 2 gradients are collected.
const Rule kRennala{"async, rennala:4",
                    {.consistency = ps::Consistency::kAsync,
                     .staleness_rule = ps::StalenessRule::kRennala,
                     .rule_number = 4}};
const Rule kBackup{"sync, 1 backup", {.backup_workers = 1}};

INSTANTIATE_TEST_SUITE_P(Under, OneReplica, testing::Values(kAsync, kSsp2, kCompensated, kFresh));

class Replicas : public AsynchronousCentralStorage, public testing::WithParamInterface<Rule> {};

TEST_P(Replicas, TrainEveryBatchOnceAndEndWithASnapshot) {
  const auto strategy = make(3, GetParam().options);
  strategy->begin({});
  const std::vector<TakenSnapshot> taken = train(*strategy);
  ASSERT_GE(taken.size(), 1U);
  const TakenSnapshot& last = taken.back();
  EXPECT_TRUE(last.assignment.is_final);
  EXPECT_EQ(last.assignment.status.samples, 20 * kBatch);
  EXPECT_EQ(last.assignment.position, (ps::DataPosition{2, 0, {}}));
  EXPECT_TRUE(std::ranges::equal(last.copy.values.f32(), strategy->snapshot().values.f32()));
}

// From a checkpoint of an unfinished job follows which samples are left, and a resumed run trains
// each of them once.
TEST_P(Replicas, ContinueFromASnapshot) {
  const auto first = make(3, GetParam().options);
  first->begin({});
  const std::vector<TakenSnapshot> taken = train(*first);
  for (const TakenSnapshot& from : taken) {
    const JobStatus& status = from.assignment.status;
    const auto second = make(2, GetParam().options);
    second->restore(from.copy);
    EXPECT_TRUE(same_blocks(copy_of(second->snapshot()), from.copy));
    second->begin({status.step, status.samples, from.assignment.position});
    const std::vector<TakenSnapshot> later = train(*second);
    ASSERT_GE(later.size(), 1U);
    EXPECT_EQ(later.back().assignment.status.samples, 20 * kBatch);
    EXPECT_EQ(later.back().assignment.position, (ps::DataPosition{2, 0, {}}));
  }
}

TEST_P(Replicas, TakeALastSnapshotOnARequestToStop) {
  const auto strategy = make(3, GetParam().options);
  strategy->begin({});
  before_step = [&](Replica& replica, const ps::SampleRange& lease) {
    if (lease.begin == 5 * kBatch) {
      asynchronous_job(*strategy, replica.index).request_stop(ps::StopKind::kSigterm);
    }
  };
  const std::vector<TakenSnapshot> taken = train(*strategy);
  ASSERT_GE(taken.size(), 1U);
  EXPECT_EQ(taken.back().assignment.stopped_by, ps::StopKind::kSigterm);
  EXPECT_LT(taken.back().assignment.status.samples, 20 * kBatch);
  EXPECT_TRUE(taken.back().assignment.writes_checkpoint);
}

TEST_P(Replicas, EndWhenOneOfThemFails) {
  const auto strategy = make(3, GetParam().options);
  strategy->begin({});
  before_push = [&](Replica&, const ps::SampleRange& lease) {
    if (lease.begin == kBatch) throw std::runtime_error("a broken wire");
  };
  EXPECT_EQ(message_of<std::runtime_error>([&] { train(*strategy); }), "a broken wire");
  EXPECT_THROW(asynchronous_job(*strategy, 0).next_lease(), PeerError);
  EXPECT_THROW(asynchronous_job(*strategy, 2).wait_assignment(), PeerError);
}

INSTANTIATE_TEST_SUITE_P(Under, Replicas,
                         testing::Values(kAsync, kAdaptive, kSsp0, kSsp2, kBackup, kFresh,
                                         kRingmaster, kRennala));

TEST_F(AsynchronousCentralStorage, KeepsEveryReplicaWithinTheStalenessOfSsp) {
  constexpr int kReplicas = 3;
  constexpr std::int64_t kMostStaleness = 1;
  options_.parameter_server.plan.dataset_size = 60 * kBatch;
  options_.parameter_server.plan.total_epochs = 1;
  const auto strategy =
      make(kReplicas, {.consistency = ps::Consistency::kSsp, .max_staleness = kMostStaleness});
  strategy->begin({});
  std::array<std::atomic<std::int64_t>, kReplicas> pushed{};
  before_push = [&](Replica& replica, const ps::SampleRange& lease) {
    auto& mine = pushed.at(static_cast<std::size_t>(replica.index));
    std::int64_t slowest = mine;
    for (const auto& each : pushed) slowest = std::min(slowest, each.load());
    // A replica that has no batch left at the end no longer holds back the others.
    if (lease.begin < (60 - 2 * kReplicas) * kBatch) {
      EXPECT_LE(mine - slowest, kMostStaleness) << "replica " << replica.index;
    }
    ++mine;  // counted before the push, so that other replicas never see a push that is not counted
  };
  train(*strategy);
}

TEST_F(AsynchronousCentralStorage, GivesAReplicaTheNewestValuesAfterARefresh) {
  const auto strategy = make(2, {.consistency = ps::Consistency::kAsync});
  strategy->begin({});
  const auto train_one = [&](int index) {
    AsynchronousJob& job = asynchronous_job(*strategy, index);
    const auto lease = job.next_lease();
    ASSERT_TRUE(lease);
    job.begin_step(*lease);
    step(strategy->replicas()[static_cast<std::size_t>(index)], *lease, 1);
  };
  train_one(0);
  for (int i = 0; i < 5; ++i) train_one(1);

  const Replica& replica = strategy->replicas()[0];
  const auto has_the_newest = [&] {
    for (std::size_t b = 0; b < replica.arena->buckets().size(); ++b) {
      replica.variables->wait_values(static_cast<BucketId>(b));
    }
    return std::ranges::equal(replica.arena->values().f32(), strategy->snapshot().values.f32());
  };
  EXPECT_FALSE(has_the_newest()) << "the other replica has pushed since";
  asynchronous_job(*strategy, 0).refresh();
  EXPECT_TRUE(has_the_newest());
}

TEST_F(AsynchronousCentralStorage, AveragesRunningStatisticsBySamples) {
  const auto strategy = make(2, {.consistency = ps::Consistency::kSsp});
  strategy->begin({});
  const std::vector<TakenSnapshot> taken = train(*strategy);
  const auto replicas = strategy->replicas();
  const std::span<const float> found = taken.back().copy.state.f32();
  ASSERT_FALSE(found.empty());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [least, most] =
        std::minmax({replicas[0].state->values.f32()[i], replicas[1].state->values.f32()[i]});
    EXPECT_GE(found[i], least);
    EXPECT_LE(found[i], most);
  }
}

TEST_F(AsynchronousCentralStorage, RefusesAsManyBackupWorkersAsReplicas) {
  EXPECT_THROW(make(2, {.backup_workers = 2}), UsageError);
}

TEST_F(AsynchronousCentralStorage, RefusesSynchronizedBatchNorm) {
  options_.batch_norm = BatchNormStatistics::kSync;
  EXPECT_THROW(make(2, {.consistency = ps::Consistency::kAsync}), UsageError);
}

}  // namespace
}  // namespace syncopate
