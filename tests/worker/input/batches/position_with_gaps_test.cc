// Tests resuming a run in which asynchronous workers have left samples untrained.
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "tests/worker/input/counting_dataset.h"
#include "worker/input/batches/batch_plan.h"
#include "worker/input/batches/batch_source.h"

namespace syncopate {
namespace {

using Ranges = std::vector<ps::SampleRange>;
using Places = std::vector<std::int64_t>;  // positions in an epoch's order

// Returns the places that the samples of a batch have in the order of their epoch.
std::pair<std::int64_t, Places> places(const BatchPlan& plan, std::int64_t sequence) {
  const PlannedBatch planned = plan.batch(sequence);
  Places found;
  for (std::int64_t i = planned.begin; i < planned.end;) {
    const ps::SampleRange range = plan.range_at(planned, i);
    EXPECT_EQ(range.epoch, planned.epoch);
    for (std::int64_t place = range.begin; place < range.end; ++place) found.push_back(place);
    i += range.end - range.begin;
  }
  return {planned.epoch, found};
}

using EpochPlaces = std::pair<std::int64_t, Places>;

TEST(APositionWithGaps, IsTrainedFirstOneEpochAfterTheOther) {
  const BatchPlan plan(10, {.batch_size = 2}, {2, 4, {{2, 0, 2}, {1, 6, 8}, {0, 2, 4}}});
  EXPECT_EQ(places(plan, 0), (EpochPlaces{0, {2, 3}}));
  EXPECT_EQ(places(plan, 1), (EpochPlaces{1, {6, 7}}));
  EXPECT_EQ(places(plan, 2), (EpochPlaces{2, {0, 1}}));
  EXPECT_EQ(places(plan, 3), (EpochPlaces{2, {4, 5}}));
  EXPECT_EQ(places(plan, 6), (EpochPlaces{3, {0, 1}}));
}

TEST(APositionWithGaps, JoinsRangesOfOneEpochInABatch) {
  const BatchPlan plan(10, {.batch_size = 4}, {1, 0, {{0, 8, 9}, {0, 0, 1}, {0, 3, 7}}});
  EXPECT_EQ(places(plan, 0), (EpochPlaces{0, {0, 3, 4, 5}}));
  EXPECT_EQ(plan.batch(1).position, (ps::DataPosition{1, 0}))
      << "the two that are left are no batch";
}

TEST(APositionWithGaps, JoinsTheGapsOfItsEpochWithWhatFollows) {
  const BatchPlan plan(7, {.batch_size = 2}, {1, 4, {{1, 1, 2}}});
  EXPECT_EQ(places(plan, 0), (EpochPlaces{1, {1, 4}}));
  EXPECT_EQ(places(plan, 1), (EpochPlaces{1, {5, 6}}));
  EXPECT_EQ(places(plan, 2), (EpochPlaces{2, {0, 1}}));
}

TEST(APositionWithGaps, JoinsGapsWithARemainderThatIsTooSmallForABatch) {
  const BatchPlan plan(7, {.batch_size = 2}, {1, 6, {{1, 1, 2}}});
  EXPECT_EQ(places(plan, 0), (EpochPlaces{1, {1, 6}}));
  EXPECT_EQ(plan.batch(1).position, (ps::DataPosition{2, 0}));
}

TEST(APositionWithGaps, HasAShortBatchPerEpochWithoutDropping) {
  const BatchPlan plan(5, {.batch_size = 2, .drop_remainder = false}, {1, 4, {{0, 1, 4}}});
  EXPECT_EQ(places(plan, 0), (EpochPlaces{0, {1, 2}}));
  EXPECT_EQ(places(plan, 1), (EpochPlaces{0, {3}}));
  EXPECT_EQ(plan.batch(1).global_count, 1);
  EXPECT_EQ(places(plan, 2), (EpochPlaces{1, {4}}));
  EXPECT_EQ(places(plan, 3), (EpochPlaces{2, {0, 1}}));
}

TEST(APositionWithGaps, CutsEachBatchIntoShares) {
  const auto share = [](int replica) {
    return places(BatchPlan(9, {.batch_size = 6, .shard = {replica, 1, 3}},
                            {1, 0, {{0, 0, 1}, {0, 2, 5}, {0, 7, 9}}}),
                  0);
  };
  EXPECT_EQ(share(0), (EpochPlaces{0, {0, 2}}));
  EXPECT_EQ(share(1), (EpochPlaces{0, {3, 4}}));
  EXPECT_EQ(share(2), (EpochPlaces{0, {7, 8}}));
}

TEST(APositionWithGaps, HasTheRemainingRangesAtEveryBatch) {
  const BatchPlan plan(10, {.batch_size = 2},
                       {1, 6, {{0, 2, 5}, {0, 9, 10}, {1, 0, 1}, {1, 3, 4}}});
  EXPECT_EQ(plan.batch(1).position,
            (ps::DataPosition{1, 6, {{0, 4, 5}, {0, 9, 10}, {1, 0, 1}, {1, 3, 4}}}));
  EXPECT_EQ(plan.batch(2).position, (ps::DataPosition{1, 6, {{1, 0, 1}, {1, 3, 4}}}));
  EXPECT_EQ(plan.batch(3).position, (ps::DataPosition{1, 6}));
  EXPECT_EQ(plan.batch(4).position, (ps::DataPosition{1, 8}));
}

TEST(APositionWithGaps, LeavesOutRangesThatMakeNoBatch) {
  EXPECT_EQ(BatchPlan(10, {.batch_size = 4}, {1, 4, {{0, 0, 3}}}).batch(0).position,
            (ps::DataPosition{1, 4}));
  EXPECT_EQ(BatchPlan(10, {.batch_size = 4}, {1, 8, {{1, 0, 1}}}).batch(0).position,
            (ps::DataPosition{2, 0}));
}

TEST(APositionWithGaps, CountsBatchesToTheEndOfAnEpoch) {
  const BatchPlan plan(10, {.batch_size = 4}, {2, 4, {{0, 0, 9}, {1, 0, 3}, {2, 0, 2}}});
  EXPECT_EQ(plan.batches_before(0), 0);
  EXPECT_EQ(plan.batches_before(1), 2);
  EXPECT_EQ(plan.batches_before(2), 2);
  EXPECT_EQ(plan.batches_before(3), 4);
  EXPECT_EQ(plan.batches_before(5), 8);
}

TEST(APositionWithGaps, RefusesInvalidRanges) {
  const auto refused = [](const Ranges& untrained) {
    try {
      const BatchPlan plan(10, {.batch_size = 2}, {1, 4, untrained});
    } catch (const UsageError&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused({{0, 0, 10}, {1, 0, 4}}));
  EXPECT_TRUE(refused({{0, 0, 11}}));
  EXPECT_TRUE(refused({{0, -1, 2}}));
  EXPECT_TRUE(refused({{-1, 0, 2}}));
  EXPECT_TRUE(refused({{0, 3, 3}}));
  EXPECT_TRUE(refused({{1, 3, 5}})) << "not passed over yet";
  EXPECT_TRUE(refused({{2, 0, 2}})) << "an epoch to come";
  EXPECT_TRUE(refused({{0, 4, 6}, {0, 0, 5}})) << "trained twice";
}

// A position with the ranges that a run of three workers left untrained, in three epochs and of
// different sizes.
constexpr std::int64_t kSize = 60;
const ps::DataPosition kGaps = {
    2, 36, {{0, 48, 54}, {1, 0, 5}, {1, 17, 18}, {1, 31, 37}, {2, 6, 12}, {2, 24, 30}}};
const std::map<std::int64_t, std::int64_t> kUntrained = {{0, 6}, {1, 12}, {2, 36}, {3, 60}};

// Every sample is trained at most once, and the number of trained samples is the number of samples
// left, so each is trained exactly once.
TEST(ARunResumedWithGaps, TrainsEverySampleOncePerEpochInAnyWorldSize) {
  const CountingDataset dataset(kSize);
  for (const int world : {1, 2, 3, 5}) {
    for (const bool drop_remainder : {true, false}) {
      const std::int64_t batch = drop_remainder ? 6 : 7;  // 6 divides all epochs
      std::map<std::pair<std::int64_t, std::int32_t>, int> times;
      std::map<std::int64_t, std::int64_t> samples;
      for (int rank = 0; rank < world; ++rank) {
        const InputOptions options{.batch_size = batch,
                                   .drop_remainder = drop_remainder,
                                   .threads = 2,
                                   .shard = {rank, 1, world}};
        const BatchPlan plan(kSize, options, kGaps);
        const auto source = make_batch_source(dataset, options, kGaps);
        for (std::int64_t i = 0; i < plan.batches_before(4); ++i) {
          for (const std::int32_t label : source->next().target.i32()) {
            ++times[{plan.batch(i).epoch, label}];
            ++samples[plan.batch(i).epoch];
          }
        }
      }
      EXPECT_EQ(samples, kUntrained) << world << " tasks, batches of " << batch;
      for (const auto& [sample, count] : times) {
        ASSERT_EQ(count, 1) << "sample " << sample.second << " of epoch " << sample.first;
      }
    }
  }
}

std::vector<std::uint8_t> take(BatchSource& source) {
  const auto pixels = source.next().inputs[0].u8();
  return {pixels.begin(), pixels.end()};
}

TEST(ARunResumedWithGaps, TrainsThemInTheOrderOfTheirEpoch) {
  const CountingDataset dataset(kSize, {6, 6, 1});
  const InputOptions options{.batch_size = 6, .augment = Augment::kCropFlip};
  const auto in_time = make_batch_source(dataset, options, {1, 48});
  const auto late = make_batch_source(dataset, options, {2, 36, {{1, 48, 54}}});
  EXPECT_EQ(take(*late), take(*in_time));
}

TEST(ARunResumedWithGaps, ContinuesBitForBitFromEveryPosition) {
  const CountingDataset dataset(kSize, {6, 6, 1});
  for (const bool drop_remainder : {true, false}) {
    for (const int world : {1, 2}) {
      const InputOptions options{.batch_size = 7,
                                 .drop_remainder = drop_remainder,
                                 .augment = Augment::kCropFlip,
                                 .threads = 2,
                                 .shard = {world - 1, 1, world}};
      std::vector<ps::DataPosition> positions;
      std::vector<std::vector<std::uint8_t>> batches;
      const auto uninterrupted = make_batch_source(dataset, options, kGaps);
      for (int i = 0; i < 20; ++i) {
        positions.push_back(uninterrupted->position());
        batches.push_back(take(*uninterrupted));
      }
      for (std::size_t from = 0; from < positions.size(); ++from) {
        const auto resumed = make_batch_source(dataset, options, positions[from]);
        for (std::size_t i = from; i < batches.size(); ++i) {
          ASSERT_EQ(resumed->position(), positions[i]);
          ASSERT_EQ(take(*resumed), batches[i]) << "batch " << i << " from " << from;
        }
      }
    }
  }
}

}  // namespace
}  // namespace syncopate
