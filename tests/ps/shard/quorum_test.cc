// Tests Consistency::kQuorum: displacements that arrive together make one update with their mean.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/optim/outer_rule.h"
#include "models/tensor/sums.h"
#include "tests/ps/shard/one_value.h"
#include "tests/ps/shard/shard_case.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::ps {
namespace {

constexpr ConsistencyOptions kAll{.consistency = Consistency::kQuorum};
// An update waits for two workers, then one second.
constexpr ConsistencyOptions kTwo{.consistency = Consistency::kQuorum, .quorum = 2, .grace = 1.0};

void advance_to(OneValue& one, double seconds) {
  one.shard().advance_to(shard_time(seconds));
  one.work();
}

TEST(QuorumRule, MergesByTheMeanOfTheSamplesWhenAllWorkersWait) {
  OneValue one(kAll, 2);
  one.push(1, 1, 1, {.gradient = 4.0F, .samples = 1});
  EXPECT_EQ(one.log(), "");
  EXPECT_EQ(one.shard().next_deadline(), std::nullopt);
  one.push(0, 1, 1, {.gradient = 8.0F, .samples = 3});
  EXPECT_EQ(one.log(), "applied 0:1 v2, applied 1:1 v2, answered 0:1 v2 =-7, answered 1:1 v2 =-7");
}

TEST(QuorumRule, WaitsForTheQuorumAndThenForTheGrace) {
  OneValue one(kTwo, 4);
  one.push(0, 1, 1, {.seconds = 1.0});
  EXPECT_EQ(one.shard().next_deadline(), std::nullopt);
  advance_to(one, 10.0);
  EXPECT_EQ(one.log(), "") << "one worker is no quorum";
  one.push(1, 1, 1, {.seconds = 12.0});
  EXPECT_EQ(one.shard().next_deadline(), shard_time(13.0));
  one.push(2, 1, 1, {.gradient = 4.0F, .seconds = 12.5});
  EXPECT_EQ(one.shard().next_deadline(), shard_time(13.0)) << "a third worker does not extend it";
  advance_to(one, 12.9);
  EXPECT_EQ(one.log(), "");
  advance_to(one, 13.0);
  EXPECT_EQ(one.log(),
            "applied 0:1 v2, applied 1:1 v2, applied 2:1 v2, answered 0:1 v2 =-2, "
            "answered 1:1 v2 =-2, answered 2:1 v2 =-2");
  EXPECT_EQ(one.shard().next_deadline(), std::nullopt);
}

TEST(QuorumRule, DropsNothingThatComesLate) {
  OneValue one(kTwo, 3);
  one.push(0, 1, 1);
  one.push(1, 1, 1);
  advance_to(one, 1.0);
  one.log();
  one.push(2, 1, 1, {.gradient = 5.0F, .seconds = 2.0});
  one.push(1, 2, 2, {.seconds = 3.0});
  advance_to(one, 4.0);
  EXPECT_EQ(one.log(),
            "applied 1:2 v3, applied 2:1 v3 s1, answered 1:2 v3 =-4, answered 2:1 v3 =-4");
}

TEST(QuorumRule, MergesWithoutGraceAsSoonAsTheQuorumIsThere) {
  OneValue one({.consistency = Consistency::kQuorum, .quorum = 2}, 3);
  one.push(0, 1, 1, {.seconds = 1.0});
  one.push(2, 1, 1, {.seconds = 2.0});
  EXPECT_EQ(one.log(), "applied 0:1 v2, applied 2:1 v2, answered 0:1 v2 =-1, answered 2:1 v2 =-1");
}

TEST(QuorumRule, DoesNotWaitForWorkersThatAreAway) {
  OneValue one(kTwo, 3);
  one.push(1, 1, 1);
  one.shard().rest(0, 1, 0);
  one.work();
  EXPECT_EQ(one.log(), "");
  one.shard().leave(2, 1);
  one.work();
  EXPECT_EQ(one.log(), "applied 1:1 v2, answered 1:1 v2 =-1");
}

TEST(QuorumRule, KeepsThePushOfAWorkerThatHasLeft) {
  OneValue one(kTwo, 3);
  one.push(0, 1, 1, {.gradient = 3.0F});
  one.shard().leave(0, 1);
  one.work();
  EXPECT_EQ(one.log(), "");
  one.push(1, 1, 1);
  advance_to(one, 5.0);
  EXPECT_EQ(one.log(), "") << "the worker that has left is not one of the quorum";
  one.push(2, 1, 1, {.seconds = 6.0});
  EXPECT_TRUE(contains(one.log(), "applied 0:1 v2, applied 1:1 v2, applied 2:1 v2"));
  EXPECT_FLOAT_EQ(one.value(), -5.0F / 3.0F);
}

TEST(QuorumRule, HoldsBackWhatIsNotInASnapshot) {
  OneValue one(kTwo, 3);
  one.shard().freeze(1);
  one.push(0, 1, 1);
  one.push(1, 1, 1);
  advance_to(one, 9.0);
  EXPECT_EQ(one.log(), "");
  one.shard().thaw();
  one.work();
  EXPECT_EQ(one.log(), "applied 0:1 v2, applied 1:1 v2, answered 0:1 v2 =-1, answered 1:1 v2 =-1")
      << "its time had come while the snapshot was taken";
}

TEST(QuorumRule, TakesASnapshotWithoutWaitingForFurtherRounds) {
  OneValue one(kAll, 2);
  one.push(0, 1, 1);
  one.push(1, 1, 1);
  one.log();
  const auto clocks = one.shard().freeze(1);
  const auto copy = std::make_shared<ShardSnapshot>(one.shard().snapshot());
  one.shard().begin_snapshot(1, clocks, copy);
  one.work();
  EXPECT_EQ(one.log(), "snapshot v2");
  EXPECT_EQ(copy->buckets.front().version, 2U);
}

TEST(QuorumRule, ChangesNothingWithoutSamples) {
  OneValue one(kAll, 2, 5.0F);
  one.push(0, 1, 1, {.samples = 0});
  one.push(1, 1, 1, {.samples = 0});
  EXPECT_EQ(one.value(), 5.0F);
}

TEST(QuorumRule, RefusesContradictions) {
  const auto error = [](const ConsistencyOptions& options) {
    return message_of<UsageError>([&] { check_consistency(options); });
  };
  EXPECT_TRUE(
      contains(error({.consistency = Consistency::kAsync, .quorum = 2}), "expected quorum"));
  EXPECT_TRUE(contains(error({.consistency = Consistency::kQuorum, .quorum = -1}), "0 or more"));
  EXPECT_TRUE(contains(
      error({.consistency = Consistency::kQuorum, .staleness_rule = StalenessRule::kInverse}),
      "a staleness rule under quorum"));
  for (const double grace : {-1.0, 1e9, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(
        contains(error({.consistency = Consistency::kQuorum, .grace = grace}), "s of grace"));
  }
}

// The exchange of synchronous workers: each scales its displacement, then all are added.
TEST(Quorum, OfAllWorkersHasTheBitsOfAnExchange) {
  const std::array<std::int64_t, 3> samples = {64, 64, 17};
  const OuterRuleOptions rule{.learning_rate = 0.7, .momentum = 0.9, .nesterov = true};
  const ArenaLayout layout = small_layout();
  const std::vector<Gradient> changes = random_gradients(3, 1);
  const std::int64_t n = layout.total();

  const Tensor values = first_values();
  const auto outer = make_outer_rule(rule);
  std::vector<Gradient> parts;
  for (std::size_t w = 0; w < 3; ++w) {
    Gradient now(values.f32().begin(), values.f32().end());
    for (std::size_t i = 0; i < now.size(); ++i) now[i] -= changes[w][i];
    displacement(parts.emplace_back(now.size()), values.f32(), now,
                 displacement_weight(samples[w], 64 + 64 + 17));
  }
  const std::array<float*, 3> ranks = {parts[0].data(), parts[1].data(), parts[2].data()};
  for (std::int64_t begin = 0; begin < n; begin += kBlockElements) {
    sum_kernels(detect_isa())
        .sum_to_all_f32(ranks.data(), 3, first_addend(begin, 3), begin,
                        std::min(kBlockElements, n - begin));
  }
  Gradient momentum(parts[0].size());
  const Tensor expected = make_host_tensor({n}, DType::kF32);
  std::ranges::copy(values.f32(), expected.f32().begin());
  const std::array<std::span<float>, 1> slots = {momentum};
  update_range(*outer, {.learning_rate = 0.7F, .step = 1}, layout, {0, n}, expected.f32(), parts[0],
               slots);

  Shard shard(layout, {{0, n}}, make_outer_rule(rule), kAll, first_values());
  std::vector<Gradient> pushed;
  for (std::size_t w = 0; w < 3; ++w) {
    shard.join(static_cast<WorkerId>(w), 1, 0);
    Gradient now(values.f32().begin(), values.f32().end());
    for (std::size_t i = 0; i < now.size(); ++i) now[i] -= changes[w][i];
    displacement(pushed.emplace_back(now.size()), values.f32(), now, 1.0F);
  }
  for (std::size_t w = 0; w < 3; ++w) {
    PushRequest push = sync_push(static_cast<int>(w), 0, 1, pushed[w], 0.7F);
    push.samples = samples[w];
    shard.push(push);
  }
  std::vector<ShardEvent> events;
  shard.work(0, events);
  EXPECT_TRUE(same_bits(shard.values(), expected));
}

}  // namespace
}  // namespace syncopate::ps
