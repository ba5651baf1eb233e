// Tests the position after a round with different numbers of steps of the replicas.
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "worker/input/batches/batch_plan.h"
#include "worker/input/batches/uneven_round.h"

namespace syncopate {
namespace {

using Steps = std::vector<std::int64_t>;
using Counts = std::map<std::pair<std::int64_t, std::int64_t>, int>;  // by epoch and place in it

// Counts the samples of the plan's batches `first` to `last` - 1.
void count(const BatchPlan& plan, std::int64_t first, std::int64_t last, Counts& counts) {
  for (std::int64_t sequence = first; sequence < last; ++sequence) {
    const PlannedBatch planned = plan.batch(sequence);
    for (std::int64_t i = planned.begin; i < planned.end;) {
      const ps::SampleRange range = plan.range_at(planned, i);
      for (std::int64_t place = range.begin; place < range.end; ++place) {
        ++counts[{range.epoch, place}];
      }
      i += range.end - range.begin;
    }
  }
}

TEST(AnUnevenRound, LeavesTheSharesOfMissingSteps) {
  EXPECT_EQ(position_after_round(24, 6, {}, Steps{3, 1, 2}),
            (ps::DataPosition{0, 18, {{0, 8, 10}, {0, 14, 18}}}));
  EXPECT_EQ(position_after_round(24, 6, {}, Steps{2, 2, 2}), (ps::DataPosition{0, 12}));
}

TEST(AnUnevenRound, MayReachIntoTheNextEpoch) {
  EXPECT_EQ(position_after_round(13, 6, {0, 6}, Steps{1, 2}),
            (ps::DataPosition{1, 6, {{1, 0, 3}}}));
  EXPECT_EQ(position_after_round(13, 6, {0, 6}, Steps{2, 0}),
            (ps::DataPosition{1, 6, {{0, 9, 12}, {1, 3, 6}}}));
}

TEST(AnUnevenRound, LeavesEverySampleToBeTrainedOnce) {
  constexpr std::int64_t kSamples = 60;  // batches of 5 leave no remainder
  for (const ps::DataPosition& start :
       {ps::DataPosition{}, ps::DataPosition{0, 20, {{0, 3, 8}, {0, 10, 15}}},
        ps::DataPosition{1, 10, {{0, 1, 3}, {0, 17, 20}, {1, 2, 7}}}}) {
    for (const Steps& steps : {Steps{4, 1, 2}, Steps{0, 0, 5}, Steps{13, 2, 9}}) {
      Counts counts;
      const auto plan_of = [&](int replica) {
        return BatchPlan(kSamples, {.batch_size = 5, .shard = {replica, 1, 3}}, start);
      };
      for (int replica = 0; replica < 3; ++replica) {
        count(plan_of(replica), 0, steps[static_cast<std::size_t>(replica)], counts);
      }
      const BatchPlan rest(kSamples, {.batch_size = 5, .drop_remainder = false},
                           position_after_round(kSamples, 5, start, steps));
      count(rest, 0, rest.batches_before(3), counts);
      Counts expected;
      const BatchPlan undisturbed(kSamples, {.batch_size = 5}, start);
      count(undisturbed, 0, undisturbed.batches_before(3), expected);
      EXPECT_EQ(counts, expected);
    }
  }
}

}  // namespace
}  // namespace syncopate
